// @ts-check
/** What the module is given in its tests in place of a browser and a server. */

import assert from 'node:assert/strict';
import { webcrypto } from 'node:crypto';
import { ChatError, createChat, threadOf } from '../assets/hermes-chat.js';

globalThis.crypto ??= /** @type {any} */ (webcrypto); // node 18

/** Lets everything run that waits for nothing but a promise. */
export async function settle() {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** A clock that stands still until it is advanced. */
export class FakeClock {
  constructor() {
    this.time = 0;
    /** @type {{at: number, run: () => void}[]} */
    this.timers = [];
  }

  /** @param {() => void} run @param {number} ms */
  setTimeout(run, ms) {
    const timer = { at: this.time + ms, run };
    this.timers.push(timer);
    return timer;
  }

  /** @param {any} timer */
  clearTimeout(timer) {
    this.timers = this.timers.filter((t) => t !== timer);
  }

  random() {
    return 1;
  }

  /** @param {number} ms */
  async advance(ms) {
    const end = this.time + ms;
    await settle();
    for (;;) {
      const next = this.timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.time = next.at;
      this.clearTimeout(next);
      next.run();
      await settle();
    }
    this.time = end;
  }
}

/** A localStorage; `blocked` makes it throw, `full` makes writing throw. */
export class FakeStorage {
  constructor() {
    /** @type {Map<string, string>} */
    this.values = new Map();
    this.blocked = false;
    this.full = false;
  }

  /** @param {string} key */
  getItem(key) {
    if (this.blocked) throw new Error('SecurityError');
    return this.values.get(key) ?? null;
  }

  /** @param {string} key @param {string} value */
  setItem(key, value) {
    if (this.blocked || this.full) throw new Error('QuotaExceededError');
    this.values.set(key, value);
  }

  /** @param {string} key */
  removeItem(key) {
    if (this.blocked) throw new Error('SecurityError');
    this.values.delete(key);
  }
}

/**
 * Storages of tabs in processes of their own: a tab sees its own writes at once
 * and those of others later, and in the end all see the same.
 * @param {number} count
 */
export function slowStorages(count) {
  const storages = Array.from({ length: count }, () => new FakeStorage());
  for (const storage of storages) {
    const write = storage.setItem.bind(storage);
    storage.setItem = (key, value) => {
      write(key, value);
      setImmediate(() => setImmediate(() => storages.forEach((s) => s.values.set(key, value))));
    };
  }
  return storages;
}

/**
 * A server that speaks the contract. What stands in `faults` happens to the next
 * requests instead: a Response, or a function that is given the true answer.
 */
export class FakeServer {
  constructor() {
    /** @type {Map<string, {id: string, epoch: number, ts: string, author: string, text: string}[]>} */
    this.threads = new Map();
    /** @type {{method: string, url: string, token: string, body: string | undefined, init: RequestInit}[]} */
    this.requests = [];
    /** @type {(Response | ((answer: () => Response) => Response | Promise<Response>))[]} */
    this.faults = [];
    this.epoch = 1_000;
    this.page = 50;
  }

  /** @returns {typeof globalThis.fetch} */
  get fetch() {
    return async (url, init = {}) => {
      await null;
      const token = /** @type {any} */ (init.headers)['X-Chat-Token'];
      const body = /** @type {string | undefined} */ (init.body);
      this.requests.push({ method: init.method ?? '', url: String(url), token, body, init });
      const answer = () => init.method === 'POST' ? this.#post(token, body ?? '') : this.#poll(token, String(url));
      const fault = this.faults.shift();
      if (!fault) return answer();
      return fault instanceof Response ? fault : fault(answer);
    };
  }

  /** Adds a message, as `chat reply` does. @param {string} thread @param {string} author @param {string} text */
  write(thread, author, text) {
    const messages = this.threads.get(thread) ?? [];
    this.threads.set(thread, messages);
    const epoch = ++this.epoch;
    const message = { id: `MSG-${epoch}`, epoch, ts: 'T', author, text };
    messages.push(message);
    return message;
  }

  /** @param {string} method */
  count(method) {
    return this.requests.filter((r) => r.method === method).length;
  }

  /** @param {string} token @param {string} body */
  #post(token, body) {
    const { text, kind = 'operator' } = JSON.parse(body);
    const thread = threadOf(token);
    const { id, epoch, ts } = this.write(thread, kind, text);
    return Response.json({ success: true, id, epoch, ts, thread }, { status: 201 });
  }

  /** @param {string} token @param {string} url */
  #poll(token, url) {
    const thread = threadOf(token);
    const all = this.threads.get(thread) ?? [];
    const since = Number(new URL(url, 'http://x').searchParams.get('since'));
    const match = all.filter((m) => m.epoch > since);
    const messages = since === 0 ? match.slice(-this.page) : match.slice(0, this.page);
    return Response.json({
      success: true, thread, messages, awaiting: all.length > 0 && all[all.length - 1].author !== 'hermes',
      truncated: messages.length < match.length, cursor: messages.at(-1)?.epoch ?? since,
    });
  }
}

/** A document that can be hidden. */
export class FakeDocument extends EventTarget {
  visibilityState = 'visible';

  /** @param {string} state */
  become(state) {
    this.visibilityState = state;
    this.dispatchEvent(new Event('visibilitychange'));
  }
}

/** Two tabs share a storage and a server, and have their own of the rest. */
export function newTab({ storage = new FakeStorage(), server = new FakeServer() } = {}) {
  const clock = new FakeClock();
  const document = new FakeDocument();
  const window = new EventTarget();
  const chat = createChat({ storage, fetch: server.fetch, clock, document, window });
  /** Runs a promise to its end, whatever it waits for. @template T @param {Promise<T>} promise @returns {Promise<T>} */
  const finish = async (promise) => {
    let done = false;
    promise.then(() => { done = true; }, () => { done = true; });
    for (let i = 0; i < 2000 && !done; i++) await clock.advance(1000);
    return promise;
  };
  return { chat, storage, server, clock, document, window, finish };
}

/** A refusal of the contract. @param {number} status @param {string} code @param {object} [more] @param {HeadersInit} [headers] */
export function refusal(status, code, more = {}, headers = {}) {
  return Response.json({ success: false, code, error: `says ${code}`, ...more }, { status, headers });
}

export function html(/** @type {number} */ status) {
  return new Response('<html><h1>nginx</h1></html>', { status, headers: { 'Content-Type': 'text/html' } });
}

/** Returns the error of a promise that must fail. @param {Promise<unknown>} promise @returns {Promise<ChatError>} */
export async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof ChatError, String(error));
    return error;
  }
  return assert.fail('it succeeded');
}

// A request that arrives and whose answer does not.
export const lost = (/** @type {() => Response} */ answer) => {
  answer();
  throw new TypeError('Failed to fetch');
};
// A request that does not arrive.
export const unreachable = () => {
  throw new TypeError('Failed to fetch');
};
