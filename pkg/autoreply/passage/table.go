package passage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"
	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

const (
	// candidates is how many passages are looked at closely for one question.
	candidates = 60
	// enoughShare is which share of the question's weight a passage must have in
	// common with it, enoughTerms how many rare words do in any case, however
	// long the question is.
	enoughShare = 1.0 / 3
	enoughTerms = 2
)

// table is a full-text index of sections.
type table struct {
	db       *sql.DB
	sections []section // by row id
}

// newTable indexes sections in memory. The index holds no text: sections has it.
func newTable(ctx context.Context, sections []section) (*table, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	// Each connection would have a memory of its own.
	db.SetMaxOpenConns(1)
	t := &table{db: db, sections: sections}
	if err := t.fill(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return t, nil
}

func (t *table) close() error { return t.db.Close() }

func (t *table) fill(ctx context.Context) error {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := insert(ctx, tx, t.sections); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func insert(ctx context.Context, tx *sql.Tx, sections []section) error {
	const schema = `CREATE VIRTUAL TABLE passages USING fts5(headings, body, content='', tokenize='porter unicode61 remove_diacritics 2')`
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	row, err := tx.PrepareContext(ctx, `INSERT INTO passages (rowid, headings, body) VALUES (?, ?, ?)`)
	if err != nil {
		return err
	}
	defer func() { _ = row.Close() }()
	for i, s := range sections {
		if _, err := row.ExecContext(ctx, i, indexed(s.Path+" "+s.headings), indexed(s.Text)); err != nil {
			return err
		}
	}
	return nil
}

// search returns the best n passages that have enough in common with the terms.
func (t *table) search(ctx context.Context, terms []term, n int) ([]Passage, error) {
	// What a heading or a file is named for counts more than what it mentions.
	const ranked = `SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY bm25(passages, 3.0, 1.0), rowid LIMIT ?`
	best, err := t.rows(ctx, ranked, expressionOf(terms), candidates)
	if err != nil || len(best) == 0 {
		return nil, err
	}
	common, enough, err := t.weigh(ctx, terms, best)
	if err != nil {
		return nil, err
	}
	var found []Passage
	for _, row := range best {
		if common[row] >= enough && len(found) < n {
			found = append(found, t.sections[row].Passage)
		}
	}
	return found, nil
}

// weigh returns how much each of the rows has in common with the terms, and how
// much is enough. A term weighs the more the rarer it is.
func (t *table) weigh(ctx context.Context, terms []term, rows []int) (common map[int]float64, enough float64, err error) {
	among, err := json.Marshal(rows)
	if err != nil {
		return nil, 0, err
	}
	common = make(map[int]float64)
	var total float64
	for _, term := range terms {
		matching, err := t.rows(ctx, `SELECT count(*) FROM passages WHERE passages MATCH ?`, term.expression())
		if err != nil {
			return nil, 0, err
		}
		weight := t.weight(term, matching[0])
		total += weight
		hits, err := t.rows(ctx, `SELECT rowid FROM passages WHERE passages MATCH ? AND +rowid IN (SELECT value FROM json_each(?))`,
			term.expression(), string(among))
		if err != nil {
			return nil, 0, err
		}
		for _, row := range hits {
			common[row] += weight
		}
	}
	return common, min(total*enoughShare, enoughTerms*t.rarest()), nil
}

// weight is that of a term that the given number of passages holds. A pair that
// none holds mostly is no word, and counts half.
func (t *table) weight(term term, matching int) float64 {
	switch {
	case matching > 0:
		return math.Log(1 + float64(len(t.sections))/float64(matching))
	case term.pair:
		return t.rarest() / 2
	}
	return t.rarest()
}

// rarest is the weight of a term that one passage holds.
func (t *table) rarest() float64 { return math.Log(1 + float64(len(t.sections))) }

// rows returns the integers that a query selects.
func (t *table) rows(ctx context.Context, query string, args ...any) (numbers []int, err error) {
	rows, err := t.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("querying: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var number int
		if err := rows.Scan(&number); err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, rows.Err()
}
