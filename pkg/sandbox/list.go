package sandbox

// list serves opList.
func (f *forest) list(req request) (*Listing, error) {
	at, err := parsePath(req.Path)
	if err != nil {
		return nil, err
	}
	listing := &Listing{Entries: []Entry{}}
	room := f.limits.ResultBytes
	if at.root == "" {
		for _, t := range f.trees {
			if !f.append(listing, &room, Entry{Path: t.name, Dir: true}) {
				break
			}
		}
		return listing, nil
	}
	dir, err := f.walk(at)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, complete, err := dir.list()
	if err != nil {
		return nil, err
	}
	listing.Truncated = !complete
	for _, name := range names {
		info, ok := dir.lookup(name)
		if !ok {
			continue
		}
		entry := Entry{Path: dir.path(name), Dir: info.IsDir()}
		if !entry.Dir {
			entry.Size = info.Size()
		}
		if !f.append(listing, &room, entry) {
			break
		}
	}
	return listing, nil
}

// append adds an entry, or says by false that there is one too many. An entry
// that is closed never gets here, so that truncation does not tell of it.
func (f *forest) append(listing *Listing, room *int, entry Entry) bool {
	*room -= len(entry.Path)
	if len(listing.Entries) >= f.limits.Entries || *room < 0 {
		listing.Truncated = true
		return false
	}
	listing.Entries = append(listing.Entries, entry)
	return true
}
