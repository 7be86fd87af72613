// @ts-check
/** The field in which a message is written. */

import { codePoints } from './hermes-chat.js';
import { byId } from './words.js';

export class Composer {
  /**
   * @param {import('./words.js').Words} words
   * @param {number} limit in code points
   * @param {{send: (text: string) => void, refuse: (over: number) => void, history: () => string[]}} host
   */
  constructor(words, limit, host) {
    this.words = words;
    this.limit = limit;
    this.host = host;
    this.field = byId('text', HTMLTextAreaElement);
    this.count = byId('count', HTMLOutputElement);
    /** How far back in the history the field is; 0 is the draft. */
    this.back = 0;
    this.draft = '';
    byId('composer', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.field.addEventListener('keydown', (event) => this.#key(event));
    this.field.addEventListener('input', () => {
      this.back = 0;
      this.#changed();
    });
    this.#changed();
  }

  /** Puts a text into the field, before what stands there. @param {string} text */
  put(text) {
    this.field.value = this.field.value.trim() === '' ? text : `${text}\n${this.field.value}`;
    this.#changed();
    this.field.focus();
  }

  /** Says what the field is for and how full it is. */
  relabel() {
    this.field.placeholder = this.words.say('textName');
    const count = codePoints(this.field.value);
    const over = count - this.limit;
    this.count.value = this.words.say(over > 0 ? 'over' : 'count', { count, limit: this.limit, over });
    this.count.classList.toggle('bad', over > 0);
    if (over > 0) this.field.setAttribute('aria-invalid', 'true');
    else this.field.removeAttribute('aria-invalid');
  }

  #changed() {
    this.relabel();
    this.field.style.height = 'auto';
    const border = this.field.offsetHeight - this.field.clientHeight;
    this.field.style.height = `${this.field.scrollHeight + border}px`;
  }

  #submit() {
    const text = this.field.value;
    if (text.trim() === '') return;
    const over = codePoints(text) - this.limit;
    if (over > 0) {
      this.host.refuse(over);
      return;
    }
    this.field.value = '';
    this.back = 0;
    this.#changed();
    this.host.send(text);
    this.field.focus();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    // 229: an input method takes this key, in Safari also the one that ends it.
    if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      this.#submit();
    } else if (event.key === 'ArrowUp' && !event.shiftKey && this.#isAtEdge(0)) {
      if (this.#recall(this.back + 1)) event.preventDefault();
    } else if (event.key === 'ArrowDown' && !event.shiftKey && this.back > 0 && this.#isAtEdge(1)) {
      if (this.#recall(this.back - 1)) event.preventDefault();
    }
  }

  /** Reports whether the caret is on the first line, or on the last. @param {0 | 1} edge */
  #isAtEdge(edge) {
    const { selectionStart, selectionEnd, value } = this.field;
    if (selectionStart !== selectionEnd) return false;
    const rest = edge === 0 ? value.slice(0, selectionStart) : value.slice(selectionEnd);
    return !rest.includes('\n');
  }

  /** Shows the message that is back steps old, and the draft at 0. @param {number} back */
  #recall(back) {
    const history = this.host.history();
    if (back > history.length) return false;
    if (this.back === 0) this.draft = this.field.value;
    this.back = back;
    this.field.value = back === 0 ? this.draft : history[history.length - back];
    this.#changed();
    return true;
  }
}
