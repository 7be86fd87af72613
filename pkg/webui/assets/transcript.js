// @ts-check
/** The conversation as it is shown: messages of people, always as text. */

import { visible, visibleParts } from './hermes-chat.js';

/**
 * @typedef {import('./hermes-chat.js').Message} Message
 * @typedef {import('./hermes-chat.js').Receipt} Receipt
 * @typedef {{label: string, run: () => void}} Action
 */

/** More than the server keeps; a page that stays open for weeks stays small. */
const MAX_SHOWN = 1000;

/** An address ends where white space, a quote, a spelled sign or Chinese begins. */
const LINK = /\bhttps?:\/\/[^\s<>"'`⟦⟧\u3000-\u303f\uff00-\uffef\u4e00-\u9fff]+/gi;

export class Transcript {
  /**
   * @param {HTMLElement} log
   * @param {import('./words.js').Words} words
   * @param {(url: URL) => void} follow
   */
  constructor(log, words, follow) {
    this.log = log;
    this.words = words;
    this.follow = follow;
    /** @type {Map<string, {message: Message, element: HTMLElement}>} */
    this.shown = new Map();
    /** The day of each message in words. @type {WeakMap<Element, string>} */
    this.dayOf = new WeakMap();
    /** @type {Set<Pending>} */
    this.pending = new Set();
  }

  /** Texts that the person sent, the oldest first. */
  get ownTexts() {
    return [...this.shown.values()].filter(({ message }) => message.author === 'operator').map(({ message }) => message.text);
  }

  get isEmpty() {
    return this.shown.size === 0 && this.pending.size === 0;
  }

  /**
   * Shows messages that are not shown yet, and returns those.
   * @param {Message[]} messages
   */
  add(messages) {
    const fresh = messages.filter((m) => !this.shown.has(m.id));
    for (const message of fresh) this.#place(message, this.#article(message.author, message.text));
    for (const [id, { element }] of this.shown) {
      if (this.shown.size <= MAX_SHOWN) break;
      element.remove();
      this.shown.delete(id);
    }
    if (fresh.length > 0) this.#days();
    return fresh;
  }

  /**
   * Forgets everything and returns the texts that were not acknowledged, for
   * what is being sent belongs to the old conversation.
   */
  clear() {
    const unsent = [...this.pending].map((p) => p.text);
    for (const p of this.pending) p.giveUp();
    this.pending.clear();
    this.shown.clear();
    this.log.replaceChildren();
    return unsent;
  }

  /** Shows a message that is on its way. @param {string} text @param {() => void} giveUp */
  begin(text, giveUp) {
    const p = new Pending(this, text, this.#article('operator', text), giveUp);
    this.pending.add(p);
    this.log.append(p.element);
    return p;
  }

  /** Says everything anew in the language of the words. */
  relabel() {
    for (const { message, element } of this.shown.values()) this.#label(element, message);
    for (const { element } of this.pending) this.#author(element, 'operator');
    this.#days();
  }

  /** @param {Pending} p @param {Receipt} receipt */
  settle(p, receipt) {
    this.pending.delete(p);
    if (this.shown.has(receipt.id)) {
      p.element.remove();
      return;
    }
    p.element.classList.remove('pending', 'failed');
    this.#place({ ...receipt, author: 'operator', text: p.text }, p.element);
    this.#days();
  }

  /** @param {Message} message @param {HTMLElement} element */
  #place(message, element) {
    this.shown.set(message.id, { message, element });
    element.dataset.epoch = String(message.epoch);
    element.dataset.id = message.id;
    this.#label(element, message);
    /** @type {Element | null} */
    let before = this.log.lastElementChild;
    const isLater = (/** @type {Element} */ e) => e !== element && Number(/** @type {HTMLElement} */ (e).dataset.epoch ?? Infinity) > message.epoch;
    while (before && (isLater(before) || before === element)) before = before.previousElementSibling;
    const next = before ? before.nextElementSibling : this.log.firstElementChild;
    // An element that moves is read aloud again.
    if (next !== element) this.log.insertBefore(element, next);
  }

  /** @param {string} author @param {string} text */
  #article(author, text) {
    const article = document.createElement('article');
    article.className = `message ${['operator', 'agent', 'hermes'].includes(author) ? author : 'other'}`;
    const head = document.createElement('p');
    head.className = 'head';
    const name = document.createElement('span');
    name.className = 'author';
    head.append(name);
    const body = document.createElement('div');
    body.className = 'text';
    body.dir = 'auto';
    body.append(...this.#parts(text));
    article.append(head, body);
    this.#author(article, author);
    return article;
  }

  /** @param {HTMLElement} article @param {string} author */
  #author(article, author) {
    const name = article.querySelector('.author');
    const known = author === 'operator' || author === 'agent' || author === 'hermes';
    if (name) name.textContent = known ? this.words.say(author) : visible(author);
  }

  /** Writes author and time. @param {HTMLElement} article @param {Message} message */
  #label(article, message) {
    this.#author(article, message.author);
    const head = article.querySelector('.head');
    const sent = new Date(message.epoch);
    const time = head?.querySelector('time') ?? document.createElement('time');
    if (Number.isNaN(sent.getTime())) return;
    time.dateTime = sent.toISOString();
    this.dayOf.set(article, this.words.day(sent));
    time.title = this.words.moment(sent);
    time.textContent = this.words.time(sent);
    head?.append(time);
  }

  /**
   * Puts the date above the first message of each day. It is the day of the
   * message, never "today": the browser's clock may be wrong.
   */
  #days() {
    let last = '';
    for (const article of /** @type {Iterable<HTMLElement>} */ (this.log.children)) {
      const day = this.dayOf.get(article);
      if (day === undefined) continue;
      const shown = article.querySelector('.day');
      if (day === last) {
        shown?.remove();
        continue;
      }
      last = day;
      if (shown?.textContent === day) continue;
      const line = shown ?? document.createElement('p');
      line.className = 'day';
      line.textContent = day;
      article.prepend(line);
    }
  }

  /**
   * Returns a text as nodes: words, links that ask before they lead anywhere,
   * and spelled out what would not be seen or could act.
   * @param {string} text
   * @returns {(Node | string)[]}
   */
  #parts(text) {
    return visibleParts(text).flatMap(({ text: part, spelled }) => {
      if (!spelled) return this.#links(part);
      const sign = document.createElement('span');
      sign.className = 'spelled';
      sign.textContent = part;
      return [sign];
    });
  }

  /** @param {string} text */
  #links(text) {
    /** @type {(Node | string)[]} */
    const nodes = [];
    let end = 0;
    for (const match of text.matchAll(LINK)) {
      const address = withoutPunctuation(match[0]);
      if (!URL.canParse(address)) continue;
      nodes.push(text.slice(end, match.index), this.#link(address));
      end = match.index + address.length;
    }
    nodes.push(text.slice(end));
    return nodes;
  }

  /**
   * Returns a link without an address that the browser could follow by itself. A
   * button would not break with the lines of the text.
   * @param {string} address
   */
  #link(address) {
    const link = document.createElement('a');
    link.className = 'link';
    link.role = 'link';
    link.tabIndex = 0;
    link.textContent = address;
    link.addEventListener('click', () => this.follow(new URL(address)));
    link.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter') return;
      event.preventDefault(); // or the same key would answer the question
      this.follow(new URL(address));
    });
    return link;
  }
}

/**
 * Cuts off the marks that end a sentence, and brackets that were opened before
 * the address.
 * @param {string} address
 */
function withoutPunctuation(address) {
  const count = (/** @type {string} */ sign) => address.split(sign).length;
  for (;;) {
    const end = address.slice(-1);
    const opening = { ')': '(', ']': '[', '}': '{' }[end];
    const isOutside = opening ? count(opening) < count(end) : '.,;:!?*_'.includes(end);
    if (end === '' || !isOutside) return address;
    address = address.slice(0, -1);
  }
}

/** A message that the server has not acknowledged yet. */
export class Pending {
  /**
   * @param {Transcript} transcript
   * @param {string} text
   * @param {HTMLElement} element
   * @param {() => void} giveUp
   */
  constructor(transcript, text, element, giveUp) {
    this.transcript = transcript;
    this.text = text;
    this.element = element;
    this.giveUp = giveUp;
    element.classList.add('pending');
    element.tabIndex = -1; // takes the focus of a button that goes
    this.state = document.createElement('div');
    this.state.className = 'state';
    element.append(this.state);
  }

  /** Says how it stands and what can be done. @param {string} text @param {boolean} failed @param {Action[]} actions */
  say(text, failed, actions) {
    this.element.classList.toggle('failed', failed);
    const words = document.createElement('span');
    words.textContent = text;
    const buttons = actions.map(({ label, run }) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = label;
      button.addEventListener('click', run);
      return button;
    });
    const isFocused = this.state.contains(document.activeElement);
    this.state.replaceChildren(words, ...buttons);
    if (isFocused) (buttons[0] ?? this.element).focus();
  }

  /** @param {Receipt} receipt */
  settle(receipt) {
    if (this.state.contains(document.activeElement)) this.element.focus();
    this.state.remove();
    this.transcript.settle(this, receipt);
  }

  remove() {
    this.element.remove();
    this.transcript.pending.delete(this);
  }
}
