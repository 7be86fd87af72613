// @ts-check
/** The page: brings the conversation, the field and the notices together. */

import { ChatError, createChat, duration, explain, visible } from './hermes-chat.js';
import { Composer } from './composer.js';
import { ask, follow } from './dialogs.js';
import { Transcript } from './transcript.js';
import { byId, Words } from './words.js';

/**
 * @typedef {import('./hermes-chat.js').Update} Update
 * @typedef {import('./hermes-chat.js').Wait} Wait
 * @typedef {import('./transcript.js').Pending} Pending
 */

const { space = 'newos4', maxText = '4000' } = document.documentElement.dataset;

/**
 * Returns what stands before `/spaces/` here: the page is served at the root
 * and below the prefix of the space, and a front end may put more before both.
 */
function basePath() {
  const directory = location.pathname.replace(/[^/]*$/, '');
  const prefix = `/spaces/${space}/`;
  return directory.endsWith(prefix) ? directory.slice(0, -prefix.length) : directory.slice(0, -1);
}

/** How long what stood there before is not read aloud, in milliseconds. */
const QUIET = 500;

class ChatPage {
  constructor() {
    this.words = new Words();
    this.chat = createChat({ base: basePath(), space, maxText: Number(maxText) });
    this.transcript = new Transcript(byId('log', HTMLDivElement), this.words, (url) => follow(url, this.words));
    this.composer = new Composer(this.words, Number(maxText), {
      send: (text) => this.#send(text),
      refuse: (over) => this.#trouble(new ChatError('too_long', 'too long', { over, limit: Number(maxText) })),
      history: () => this.transcript.ownTexts,
    });
    this.scroller = byId('scroller', HTMLElement);
    this.thread = '';
    this.live = false; // what stood there before has been shown
    this.unseen = 0;
    this.atEnd = true; // the newest is in view, and is kept there
    /** @type {Update | null} the last one, to be said again in another language */
    this.last = null;
    /** @type {ChatError | null} the one that the person must read */
    this.shownTrouble = null;
    this.pollsFail = false;
  }

  start() {
    byId('language', HTMLButtonElement).addEventListener('click', () => {
      this.words.toggle();
      this.#relabel();
    });
    byId('reset', HTMLButtonElement).addEventListener('click', () => this.#reset());
    byId('newer', HTMLButtonElement).addEventListener('click', () => {
      this.#toEnd();
      this.scroller.focus({ preventScroll: true }); // the button is gone
    });
    byId('trouble-action', HTMLButtonElement).addEventListener('click', () => this.#reset());
    this.composer.field.addEventListener('input', () => {
      if (this.shownTrouble?.code === 'too_long') this.#trouble(null);
    });
    this.scroller.addEventListener('scroll', () => {
      this.atEnd = this.#isAtEnd();
      if (this.atEnd) byId('newer', HTMLButtonElement).hidden = true;
    }, { passive: true });
    new ResizeObserver(() => this.#keepEnd()).observe(this.scroller);
    window.addEventListener('offline', () => this.#connection('offline'));
    document.addEventListener('visibilitychange', () => this.#seen());
    this.#relabel();
    this.#connection('connecting');
    if (matchMedia('(pointer: fine)').matches) this.composer.field.focus();
    this.chat.watch((update) => this.#update(update), { history: true, hidden: 'awaiting' });
  }

  /** @param {Update} update */
  #update(update) {
    this.last = update;
    if (update.thread !== this.thread) this.#begin(update.thread);
    if (update.error) {
      this.#failed(update.error, update.retryInMs);
      return;
    }
    this.#connection('connected');
    if (this.pollsFail) this.#trouble(null);
    const fresh = this.transcript.add(update.messages).filter((m) => m.author !== 'operator');
    byId('awaiting', HTMLParagraphElement).hidden = !update.awaiting;
    byId('storage', HTMLParagraphElement).hidden = this.chat.persistent;
    this.#emptiness();
    if (this.live) this.#notice(fresh.filter((m) => m.author === 'hermes'));
    if (this.atEnd || !this.live) this.#toEnd();
    else if (fresh.length > 0) byId('newer', HTMLButtonElement).hidden = false;
    if (update.more) return;
    this.live = true;
    setTimeout(() => { // a reader of the screen looks later at what has just been added
      if (this.live) this.transcript.log.ariaLive = 'polite';
    }, QUIET);
  }

  /** Shows a conversation from its beginning. @param {string} thread */
  #begin(thread) {
    const isFirst = this.thread === '';
    this.thread = thread;
    this.live = false;
    this.transcript.log.ariaLive = 'off'; // what is old is not read aloud
    if (isFirst) return; // what was written meanwhile belongs to it
    this.#say(this.words.say('resetDone'));
    this.#trouble(null);
    const unsent = this.transcript.clear();
    if (unsent.length > 0) this.composer.put(unsent.join('\n'));
  }

  /** @param {ChatError} error @param {number} [retryInMs] */
  #failed(error, retryInMs) {
    if (error.code !== 'thread file is corrupt') this.#emptiness();
    if (retryInMs !== undefined) this.#connection('waiting', { wait: duration(retryInMs, this.words.lang) });
    else if (error.code === 'network') this.#connection('offline');
    else {
      this.#connection('failed');
      this.#trouble(error);
      this.pollsFail = true;
    }
  }

  /** @param {string} text */
  #send(text) {
    this.#trouble(null);
    const abort = new AbortController();
    const pending = this.transcript.begin(text, () => abort.abort());
    this.#emptiness();
    this.#toEnd();
    void this.#deliver(pending, abort, (patience) => this.chat.send(text, patience));
  }

  /**
   * Follows a message until it stands in the conversation or the person decides.
   * @param {Pending} pending
   * @param {AbortController} abort
   * @param {(patience: import('./hermes-chat.js').Patience) => Promise<import('./hermes-chat.js').Receipt>} send
   */
  async #deliver(pending, abort, send) {
    const edit = { label: this.words.say('edit'), run: () => this.#takeBack(pending) };
    const cancel = { label: this.words.say('cancel'), run: () => abort.abort() };
    const onWait = (/** @type {Wait} */ { error, ms }) => {
      const word = error.code === 'network' ? 'checking' : error.code === 'busy' ? 'busyWait' : 'limitedWait';
      tell(this.words.say(word, { wait: duration(ms, this.words.lang) }), false, [cancel]);
    };
    const tell = (/** @type {string} */ text, /** @type {boolean} */ failed, /** @type {import('./transcript.js').Action[]} */ actions) => {
      pending.say(text, failed, actions);
      this.#say(text);
      this.#keepEnd();
    };
    pending.say(this.words.say('sending'), false, []);
    try {
      pending.settle(await send({ signal: abort.signal, onWait }));
    } catch (error) {
      const actions = [edit];
      if (isWorthRepeating(error)) {
        const again = () => this.#deliver(pending, abort = new AbortController(), (patience) => this.#again(error, pending.text, patience));
        actions.unshift({ label: this.words.say('again'), run: again });
      }
      tell(explain(error, this.words.lang), true, actions);
      if (error instanceof ChatError && error.code === 'bad_token') this.#trouble(error);
    }
  }

  /**
   * @param {unknown} error
   * @param {string} text
   * @param {import('./hermes-chat.js').Patience} patience
   */
  #again(error, text, patience) {
    return error instanceof ChatError && error.detail.attempt ? this.chat.resend(error, patience) : this.chat.send(text, patience);
  }

  /** @param {Pending} pending */
  #takeBack(pending) {
    pending.remove();
    this.composer.put(pending.text);
    this.#emptiness();
  }

  async #reset() {
    const yes = await ask({
      title: this.words.say('resetTitle'), text: this.words.say('resetText'),
      yes: this.words.say('resetYes'), no: this.words.say('resetNo'),
    });
    if (yes) await this.chat.reset();
    this.composer.field.focus();
  }

  /** Tells of what Hermes wrote when nobody looked. @param {import('./hermes-chat.js').Message[]} fresh */
  #notice(fresh) {
    if (document.visibilityState !== 'hidden') return;
    this.unseen += fresh.length;
    this.#title();
  }

  #seen() {
    if (document.visibilityState === 'hidden') return;
    this.unseen = 0;
    this.#title();
  }

  #title() {
    document.title = this.unseen > 0 ? `(${this.unseen}) ${this.words.say('title')}` : this.words.say('title');
  }

  /** @param {'connecting' | 'connected' | 'waiting' | 'offline' | 'failed'} state @param {Record<string, string>} [values] */
  #connection(state, values) {
    const text = this.words.say(state, values);
    const shown = byId('connection-text', HTMLSpanElement);
    byId('connection', HTMLParagraphElement).dataset.state = state;
    if (shown.textContent !== text) shown.textContent = text;
  }

  /** Says what concerns the whole conversation. @param {ChatError | null} error */
  #trouble(error) {
    this.shownTrouble = error;
    this.pollsFail = false;
    byId('trouble', HTMLDivElement).hidden = error === null;
    const shown = byId('trouble-text', HTMLParagraphElement);
    const text = error ? explain(error, this.words.lang) : '';
    if (shown.textContent !== text) shown.textContent = text; // or it is read aloud with every poll
    const action = byId('trouble-action', HTMLButtonElement);
    action.textContent = 'hermes-reset';
    action.hidden = error?.code !== 'bad_token';
  }

  /** Says something to those who do not see the page. @param {string} text */
  #say(text) {
    byId('said', HTMLParagraphElement).textContent = visible(text);
  }

  #emptiness() {
    byId('empty', HTMLElement).hidden = !this.transcript.isEmpty;
  }

  #isAtEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    return scrollTop + clientHeight >= scrollHeight - 40;
  }

  #keepEnd() {
    if (this.atEnd) this.#toEnd();
  }

  #toEnd() {
    this.atEnd = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    byId('newer', HTMLButtonElement).hidden = true;
  }

  /** Says everything in the language that is chosen. */
  #relabel() {
    const { words } = this;
    document.documentElement.lang = words.tag;
    /** @type {[string, import('./words.js').Word][]} */
    const labels = [
      ['language', 'language'], ['reset-wide', 'resetName'], ['reset-narrow', 'reset'], ['empty-title', 'emptyTitle'], ['empty-what', 'emptyWhat'],
      ['empty-who', 'emptyWho'], ['empty-kept', 'emptyKept'], ['awaiting-text', 'awaiting'], ['newer', 'newer'],
      ['storage', 'unstored'], ['text-name', 'textName'], ['send', 'send'], ['keys', 'keys'],
    ];
    for (const [id, word] of labels) byId(id, HTMLElement).textContent = words.say(word);
    byId('language', HTMLButtonElement).title = words.say('languageName');
    byId('log', HTMLDivElement).setAttribute('aria-label', words.say('transcript'));
    this.#title();
    this.transcript.relabel();
    this.composer.relabel();
    const { last } = this;
    if (last?.error) this.#failed(last.error, last.retryInMs);
    else if (last) this.#connection('connected');
    else this.#connection('connecting');
  }
}

/** @param {unknown} error */
function isWorthRepeating(error) {
  return error instanceof ChatError && (error.detail.attempt !== undefined || ['network', 'busy', 'rate_limited', 'aborted'].includes(error.code));
}

new ChatPage().start();
