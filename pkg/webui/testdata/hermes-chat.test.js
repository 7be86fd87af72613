// @ts-check
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as module from '../assets/hermes-chat.js';
import { ChatError, codePoints, duration, explain, threadOf, visible } from '../assets/hermes-chat.js';
import { FakeServer, FakeStorage, html, newTab, refusal, settle, slowStorages } from './fakes.js';

/** @param {Promise<unknown>} promise @returns {Promise<ChatError>} */
async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof ChatError, String(error));
    return error;
  }
  return assert.fail('it succeeded');
}

const lost = (/** @type {() => Response} */ answer) => {
  answer();
  throw new TypeError('Failed to fetch');
};
const unreachable = () => {
  throw new TypeError('Failed to fetch');
};

test('the thread of a token is that of the contract', () => {
  assert.equal(threadOf('0'.repeat(64)), '60e05bd1b195af2f');
  assert.equal(threadOf('f'.repeat(64)), 'df0790f236013511');
  assert.equal(threadOf('00112233445566778899aabbccddeeff'.repeat(2)), '2a8abfa8cb990629');
  for (let length = 0; length < 200; length++) {
    const text = 'x'.repeat(length);
    assert.equal(threadOf(text), createHash('sha256').update(text).digest('hex').slice(0, 16), `${length} characters`);
  }
});

test('the file imports nothing and knows no time of day', () => {
  const source = readFileSync(new URL('../assets/hermes-chat.js', import.meta.url), 'utf8').replace(/\/\*[^]*?\*\//g, '');
  assert.doesNotMatch(source, /^\s*import\b|\bimport\(|\brequire\(|Date\b|performance\b|innerHTML|eval\(/m);
});

test('a message is sent once, with the headers of the contract and nothing of the browser', async () => {
  const { chat, server, finish } = newTab();
  const receipt = await finish(chat.send('hello\n'));
  const posts = server.requests.filter((r) => r.method === 'POST');
  assert.equal(posts.length, 1);
  const [{ url, token, body, init }] = posts;
  assert.equal(url, '/spaces/newos4/api/chat/post.php');
  assert.match(token, /^[0-9a-f]{64}$/);
  assert.deepEqual(JSON.parse(body ?? ''), { text: 'hello\n', kind: 'operator' });
  assert.equal(receipt.thread, threadOf(token));
  assert.deepEqual([init.credentials, init.redirect, init.cache, init.referrerPolicy], ['omit', 'manual', 'no-store', 'no-referrer']);
  for (const r of server.requests) assert.ok(!r.url.includes(token));
});

test('base and space make the address', async () => {
  const server = new FakeServer();
  const chat = module.createChat({ base: 'https://a.example/x/', space: 'lab', storage: null, fetch: server.fetch });
  await chat.poll();
  assert.equal(server.requests[0].url, 'https://a.example/x/spaces/lab/api/chat/poll.php?since=0');
});

test('tabs that open at the same moment agree on one token', async () => {
  const storages = slowStorages(3);
  const server = new FakeServer();
  const tabs = storages.map((storage) => newTab({ storage, server }));
  await Promise.all(tabs.map(({ chat, finish }) => finish(chat.send('hello'))));
  assert.equal(server.threads.size, 1);
  for (const storage of storages) assert.equal(storage.values.get('webx11_chat_token'), server.requests[0].token);
});

test('nothing is sent under a token that the tabs may not agree on', async () => {
  const storages = slowStorages(2);
  const server = new FakeServer();
  const tabs = storages.map((storage) => newTab({ storage, server }));
  const sent = tabs.map(async ({ chat, finish }) => {
    const polled = chat.poll();
    await null; // the token stands in the storage by now, and is not settled
    await Promise.all([finish(polled), finish(chat.send('hello'))]);
  });
  await Promise.all(sent);
  assert.deepEqual(new Set(server.requests.map((r) => r.token)).size, 1);
});

test('a reset leaves no old token behind where the storage is full', async () => {
  const { chat, storage, server, finish } = newTab();
  await finish(chat.send('old'));
  storage.full = true;
  await chat.reset();
  assert.equal(storage.values.get('webx11_chat_token'), undefined);
  assert.equal(chat.persistent, false);
  await finish(chat.send('new'));
  assert.deepEqual([...server.threads.values()].map((t) => t.map((m) => m.text)), [['old'], ['new']]);
});

test('a storage that fills up in the middle loses no message and no conversation', async () => {
  const { chat, storage, server, finish } = newTab();
  const { thread } = await finish(chat.send('one'));
  await finish(chat.poll());
  storage.full = true;
  server.write(thread, 'hermes', 'two');
  assert.deepEqual((await finish(chat.poll())).messages.map((m) => m.text), ['two']);
  assert.equal((await finish(chat.poll())).messages.length, 0);
  storage.full = false;
  server.write(thread, 'hermes', 'three');
  assert.deepEqual((await finish(chat.poll())).messages.map((m) => m.text), ['three']);
  assert.equal(JSON.parse(storage.values.get('webx11_chat_state') ?? '').cursor, server.epoch);
  assert.equal(server.threads.size, 1);
});

test('what stands in the storage and is no cursor counts as none', async () => {
  const token = 'a'.repeat(64);
  const thread = threadOf(token);
  for (const cursor of ['NaN', '-5', '1.5', '1e400', '"7"', 'null', '[]', '{', '\u0000', '9007199254740993', '']) {
    const { chat, storage, server, finish } = newTab();
    storage.setItem('webx11_chat_token', token);
    storage.setItem('webx11_chat_state', `{"thread":"${thread}","cursor":${cursor}}`);
    storage.setItem(`webx11_chat_agent_cursor_${thread}`, cursor);
    server.write(thread, 'hermes', 'here');
    assert.equal((await finish(chat.poll())).messages.length, 1, cursor);
    assert.equal((await finish(chat.agentRead())).messages.length, 1, cursor);
  }
});

test('a stored cursor of the future hides nothing', async () => {
  const token = 'a'.repeat(64);
  const thread = threadOf(token);
  const { chat, storage, server, finish } = newTab();
  storage.setItem('webx11_chat_token', token);
  storage.setItem('webx11_chat_state', JSON.stringify({ thread, cursor: 9e15 }));
  storage.setItem(`webx11_chat_agent_cursor_${thread}`, String(9e15));
  server.write(thread, 'hermes', 'here');
  for (const read of [() => chat.poll(), () => chat.agentRead()]) {
    assert.deepEqual((await finish(read())).messages.map((m) => m.text), ['here']);
    assert.equal((await finish(read())).messages.length, 0);
  }
  assert.equal(JSON.parse(storage.values.get('webx11_chat_state') ?? '').cursor, server.epoch);
  server.faults.push(lost);
  await finish(chat.send('and what is lost is found'));
  assert.equal(server.count('POST'), 1);
});

test('a true cursor is looked at once and then believed', async () => {
  const storage = new FakeStorage();
  const first = newTab({ storage });
  await first.finish(first.chat.send('q'));
  await first.finish(first.chat.poll());
  const again = newTab({ storage, server: first.server });
  const before = first.server.count('GET');
  for (let i = 0; i < 3; i++) assert.equal((await again.finish(again.chat.poll())).messages.length, 0);
  assert.equal(first.server.count('GET') - before, 4);
});

test('a cursor that the answer claims without its messages is not taken', async () => {
  for (const claimed of [9e15, 0, -1]) {
    const { chat, server, finish } = newTab();
    const { thread } = await finish(chat.send('q'));
    server.faults.push(async (answer) => Response.json({ ...await answer().json(), cursor: claimed }));
    assert.equal((await finish(chat.poll())).messages.length, 1);
    server.write(thread, 'hermes', 'a');
    assert.deepEqual((await finish(chat.poll())).messages.map((m) => m.text), ['a'], String(claimed));
  }
});

test('a page whose epochs are equal or fall ends the reading and is not read for ever', async () => {
  const { chat, server, finish } = newTab();
  const { thread } = await finish(chat.send('q'));
  const { cursor } = await finish(chat.poll());
  const odd = (/** @type {number} */ epoch) => ({ id: 'same', epoch, ts: 'T', author: 'hermes', text: 'odd' });
  server.faults.push(Response.json({
    success: true, thread, messages: [odd(cursor), odd(cursor), odd(cursor - 5)], awaiting: false, truncated: true, cursor: cursor - 5,
  }));
  const page = await finish(chat.poll());
  assert.deepEqual([page.more, page.cursor], [false, cursor]);
});

test('a broken token is replaced, a good one never', async () => {
  for (const [stored, kept] of /** @type {[string, boolean][]} */ ([['', false], ['x'.repeat(64), false], ['A'.repeat(64), false], ['a'.repeat(64), true]])) {
    const { chat, storage, server, finish } = newTab();
    storage.setItem('webx11_chat_token', stored);
    await finish(chat.poll());
    assert.equal(server.requests[0].token === stored, kept, stored);
  }
});

test('without storage the conversation lives in the page, and it says so', async () => {
  for (const fault of /** @type {const} */ (['blocked', 'full'])) {
    const tab = newTab();
    tab.storage[fault] = true;
    await tab.finish(tab.chat.send('one'));
    await tab.finish(tab.chat.send('two'));
    assert.equal(tab.chat.persistent, false, fault);
    assert.equal(tab.server.threads.size, 1, fault);
    assert.equal((await tab.finish(tab.chat.poll())).messages.length, 2, fault);
    assert.equal((await tab.finish(tab.chat.poll())).messages.length, 0, fault);
  }
  const { chat, finish } = newTab();
  await finish(chat.send('one'));
  assert.equal(chat.persistent, true);
});

test('two readers have two cursors, stored under the names of the contract', async () => {
  const { chat, storage, server, finish } = newTab();
  const { thread } = await finish(chat.send('question'));
  const reply = server.write(thread, 'hermes', 'answer');
  for (const read of [() => chat.poll(), () => chat.agentRead()]) {
    assert.deepEqual((await finish(read())).messages.map((m) => m.text), ['question', 'answer']);
    assert.equal((await finish(read())).messages.length, 0);
  }
  assert.equal(JSON.parse(storage.values.get('webx11_chat_state') ?? '').cursor, reply.epoch);
  assert.equal(storage.values.get(`webx11_chat_agent_cursor_${thread}`), String(reply.epoch));
});

test('older messages that were left out are no newer ones', async () => {
  const { chat, server, finish } = newTab();
  const { thread } = await finish(chat.send('q'));
  for (let i = 0; i < 60; i++) server.write(thread, 'hermes', `m${i}`);
  const page = await finish(chat.poll());
  assert.deepEqual([page.messages.length, page.truncated, page.more], [50, true, false]);
});

test('what others keep in the state stays', async () => {
  const { chat, storage, finish } = newTab();
  storage.setItem('webx11_chat_state', JSON.stringify({ open: true, cursor: 'x' }));
  await finish(chat.send('hello'));
  await finish(chat.poll());
  assert.equal(JSON.parse(storage.values.get('webx11_chat_state') ?? '').open, true);
});

test('cursors only move forward, also between tabs and after an empty page', async () => {
  const storage = new FakeStorage();
  const server = new FakeServer();
  const [one, two] = [newTab({ storage, server }), newTab({ storage, server })];
  const { thread } = await one.finish(one.chat.send('a'));
  const slow = two.finish(two.chat.poll());
  await slow;
  server.write(thread, 'hermes', 'b');
  await one.finish(one.chat.poll());
  const stored = () => JSON.parse(storage.values.get('webx11_chat_state') ?? '').cursor;
  const before = stored();
  server.faults.push(Response.json({ success: true, thread, messages: [], awaiting: false, truncated: false, cursor: 5 }));
  await one.finish(one.chat.poll());
  assert.equal(stored(), before);
  assert.deepEqual((await two.finish(two.chat.poll())).messages.map((m) => m.text), ['b'], 'the other tab shows it too');
  assert.equal(stored(), before);
  for (const text of ['c', 'd']) server.write(thread, 'hermes', text);
  await one.finish(one.chat.poll());
  const newest = stored();
  server.page = 1;
  assert.deepEqual((await two.finish(two.chat.poll())).messages.map((m) => m.text), ['c']);
  assert.equal(stored(), newest, 'a tab that lags behind does not pull the others back');
});

test('a page that fails in the middle loses nothing', async () => {
  const { chat, server, finish } = newTab();
  const { thread } = await finish(chat.send('q'));
  await finish(chat.poll());
  server.page = 2;
  for (const text of ['a', 'b', 'c', 'd']) server.write(thread, 'hermes', text);
  await assert.rejects(finish(chat.poll(() => { throw new Error('the tab broke'); })), /broke/);
  /** @type {string[]} */
  const seen = [];
  server.faults.push((answer) => answer(), unreachable);
  await finish(chat.poll(({ messages }) => seen.push(...messages.map((m) => m.text))));
  await failure(finish(chat.poll()));
  await finish(chat.poll(({ messages }) => seen.push(...messages.map((m) => m.text))));
  assert.deepEqual(seen, ['a', 'b', 'c', 'd']);
});

test('a cursor of another conversation counts for nothing', async () => {
  const { chat, storage, server, finish } = newTab();
  storage.setItem('webx11_chat_state', JSON.stringify({ cursor: 9e15, thread: 'dead' }));
  await finish(chat.send('hello'));
  assert.equal((await finish(chat.poll())).messages.length, 1);
  assert.equal(server.threads.size, 1);
});

test('429 is repeated after its wait, and not before', async () => {
  const { chat, server, clock, finish } = newTab();
  await finish(chat.poll());
  server.faults.push(refusal(429, 'rate_limited', { retry_after_ms: 90_500, scope: 'thread', limit: 20, window_s: 600 }));
  /** @type {number[]} */
  const waits = [];
  const sent = chat.send('hello', { onWait: ({ ms }) => waits.push(ms) });
  await clock.advance(90_499);
  assert.equal(server.count('POST'), 1);
  await clock.advance(1);
  assert.equal(server.count('POST'), 2);
  await sent;
  assert.deepEqual(waits, [90_500]);
});

test('a wait of hours is told and not waited for', async () => {
  const { chat, server, finish } = newTab();
  await finish(chat.poll());
  server.faults.push(refusal(429, 'rate_limited', { retry_after_ms: 20 * 3_600_000, scope: 'ip', limit: 100, window_s: 86400 }));
  const error = await failure(finish(chat.send('hello')));
  assert.equal(error.code, 'rate_limited');
  assert.match(explain(error), /again in 20 h/);
  assert.equal(server.count('POST'), 1);
});

test('a 429 in HTML goes by its header', async () => {
  const { chat, server, clock, finish } = newTab();
  await finish(chat.poll());
  server.faults.push(new Response('<html>', { status: 429, headers: { 'Retry-After': '7' } }));
  const sent = chat.send('hello');
  await clock.advance(6_999);
  assert.equal(server.count('POST'), 1);
  await clock.advance(1);
  await sent;
});

test('503 is repeated with growing waits and its body is never read', async () => {
  const { chat, server, finish } = newTab();
  await finish(chat.poll());
  const busy = () => {
    const response = html(503);
    response.text = response.json = () => assert.fail('the body of a 503 was read');
    return response;
  };
  server.faults.push(busy, busy, busy);
  /** @type {number[]} */
  const waits = [];
  await finish(chat.send('hello', { onWait: ({ ms }) => waits.push(ms) }));
  assert.deepEqual(waits, [1000, 2000, 4000]);
  assert.equal(server.count('POST'), 4);
});

test('503 without end is an error in the end', async () => {
  const { chat, server, finish } = newTab();
  await finish(chat.poll());
  server.faults.push(...Array.from({ length: 20 }, () => html(503)));
  const error = await failure(finish(chat.send('hello')));
  assert.equal(error.code, 'busy');
  assert.equal(server.count('POST'), 8);
});

test('nothing else is repeated, and each refusal has its sentence', async () => {
  const rows = /** @type {[number, string, RegExp, RegExp][]} */ ([
    [400, 'bad_request', /says bad_request/, /says bad_request/], [401, 'bad_token', /hermes-reset/, /hermes-reset/],
    [403, 'forbidden', /not serve/, /不提供/], [404, 'not_found', /no chat/, /没有聊天/], [405, 'method', /not allow/, /不允许/],
    [410, 'gone', /retired/, /停用/], [413, 'too_long', /too long/, /长度/], [413, 'too_large', /bytes/, /字节/],
    [507, 'thread_limit', /no new conversations/, /新会话/], [500, 'thread file is corrupt', /damaged/, /损坏/],
    [500, 'storage', /could not read or write/, /读写/], [500, 'internal', /failed/, /出错/], [418, 'teapot', /says teapot/, /says teapot/],
  ]);
  for (const [status, code, english, chinese] of rows) {
    const { chat, server, finish } = newTab();
    await finish(chat.poll());
    server.faults.push(refusal(status, code));
    const error = await failure(finish(chat.send('hello')));
    assert.equal(error.code, code);
    assert.equal(server.count('POST'), 1, code);
    assert.match(explain(error), english);
    assert.match(explain(error, 'zh-CN'), chinese);
  }
});

test('a text that is too long is refused before it is sent, and says by how much', async () => {
  const { chat, server, finish } = newTab();
  assert.equal(codePoints('😀👨‍👩‍👧‍👦'), 8);
  await finish(chat.send('😀'.repeat(4000)));
  const requests = server.requests.length;
  const error = await failure(chat.send('😀'.repeat(4003)));
  assert.deepEqual([error.code, error.detail.over], ['too_long', 3]);
  assert.match(explain(error), /3 characters too long/);
  assert.equal((await failure(chat.send(' \n'))).code, 'empty');
  assert.equal((await failure(chat.send('\ud83d'))).code, 'bad_request');
  assert.equal(server.requests.length, requests);
});

test('a message whose answer was lost is found and not sent again', async () => {
  for (const fault of [lost, (/** @type {() => Response} */ answer) => (answer(), html(502)), (/** @type {() => Response} */ answer) => (answer(), new Response('{"succ', { status: 201 }))]) {
    const { chat, server, finish } = newTab();
    await finish(chat.send('hello'));
    server.faults.push(fault);
    const receipt = await finish(chat.send('hello'));
    const [thread] = server.threads.values();
    assert.equal(receipt.id, thread[1].id, 'the second one is found, not the first');
    assert.equal(server.count('POST'), 2);
  }
});

test('a lost message is found behind other ones', async () => {
  const { chat, server, finish } = newTab();
  const { thread } = await finish(chat.send('q'));
  server.page = 2;
  server.faults.push((answer) => {
    for (const text of ['a', 'b', 'c']) server.write(thread, 'hermes', text);
    return lost(answer);
  });
  await finish(chat.send('hello'));
  assert.equal(server.count('POST'), 2);
});

test('a message that is known to be another one is not taken for the lost one', async () => {
  const { chat, server, finish } = newTab();
  await finish(chat.poll());
  server.faults.push(unreachable);
  const error = await failure(finish(chat.send('hello')));
  await finish(chat.send('hello'));
  await finish(chat.resend(error));
  assert.equal([...server.threads.values()][0].length, 2);
});

test('a lost message is not looked for in another conversation', async () => {
  const { chat, server, storage, finish } = newTab();
  await finish(chat.poll());
  server.faults.push(() => {
    storage.setItem('webx11_chat_token', 'a'.repeat(64));
    server.write(threadOf('a'.repeat(64)), 'operator', 'hello');
    return unreachable();
  });
  const error = await failure(finish(chat.send('hello')));
  assert.equal(error.code, 'lost');
  assert.equal((await failure(finish(chat.resend(error)))).code, 'aborted');
  assert.equal(server.count('POST'), 1);
});

test('a message that arrives late is found by the second look', async () => {
  const { chat, server, finish } = newTab();
  await finish(chat.poll());
  let late = () => {};
  server.faults.push((answer) => { late = answer; throw new TypeError('Failed to fetch'); }, (answer) => { const page = answer(); late(); return page; });
  await finish(chat.send('hello'));
  assert.equal(server.count('POST'), 1);
});

test('a message that did not arrive may be sent again, and is looked for once more', async () => {
  const { chat, server, finish } = newTab();
  await finish(chat.poll());
  server.faults.push(unreachable);
  const error = await failure(finish(chat.send('hello')));
  assert.equal(error.code, 'lost');
  assert.equal(server.count('POST'), 1);
  const arrived = server.write(await chat.thread(), 'operator', 'hello');
  assert.equal((await finish(chat.resend(error))).id, arrived.id);
  assert.equal(server.count('POST'), 1);
});

test('sent again after it was really lost, it stands once', async () => {
  const { chat, server, finish } = newTab();
  await finish(chat.poll());
  server.faults.push(unreachable);
  const error = await failure(finish(chat.send('hello')));
  await finish(chat.resend(error));
  assert.equal([...server.threads.values()][0].length, 1);
});

test('looking waits until the server can be asked', async () => {
  const { chat, server, window, clock, finish } = newTab();
  await finish(chat.poll());
  server.faults.push(lost, ...Array(3).fill(unreachable));
  const sent = chat.send('hello');
  await clock.advance(100);
  window.dispatchEvent(new Event('online'));
  await finish(sent);
  assert.equal(server.count('POST'), 1);
});

test('an answer that never comes counts as lost', async () => {
  const { chat, server, finish } = newTab();
  await finish(chat.poll());
  server.faults.push((answer) => {
    answer();
    const { signal } = server.requests[server.requests.length - 1].init;
    return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted'))));
  });
  await finish(chat.send('hello'));
  assert.equal(server.count('POST'), 1);
});

test('an identical message of the past is not taken for the lost one', async () => {
  const { chat, server, storage, finish } = newTab();
  storage.setItem('webx11_chat_token', '0'.repeat(64));
  server.write(threadOf('0'.repeat(64)), 'operator', 'hello');
  server.faults.push((answer) => answer(), unreachable);
  assert.equal((await failure(finish(chat.send('hello')))).code, 'lost');
});

test('before the server was ever reached nothing is posted', async () => {
  const { chat, server, finish } = newTab();
  server.faults.push(unreachable);
  assert.equal((await failure(finish(chat.send('hello')))).code, 'network');
  assert.equal(server.count('POST'), 0);
});

test('what is not the chat is told apart', async () => {
  for (const [answer, status] of /** @type {[Response, number][]} */ ([
    [html(200), 200], [html(404), 404], [html(413), 413], [Response.json({ hello: 1 }), 200],
    [new Response('{"success":true,"thre'), 200], [Response.json(null), 200], [Response.json([]), 200], [Response.json({ success: 'true' }), 200],
    [Response.json({ success: true, thread: 'x', messages: {}, cursor: 1 }), 200],
    [Response.json({ success: true, thread: 'x', messages: [], cursor: '1' }), 200],
    [Response.json({ success: true, thread: 'x', messages: [{ id: 'a', epoch: 1.5, text: '', author: 'hermes' }], cursor: 1 }), 200],
    [Response.json({ success: true, thread: 'x', messages: [], cursor: 1 }), 200], // of another conversation
    [Response.json({ success: true, thread: 'x', messages: [{}], awaiting: false, truncated: false, cursor: 1 }), 200],
  ])) {
    const { chat, server, finish } = newTab();
    server.faults.push(answer);
    const error = await failure(finish(chat.poll()));
    assert.deepEqual([error.code, error.status], ['unreadable', status]);
  }
});

test('a redirect is not followed, and says that it was one', async () => {
  const { chat, server, finish } = newTab();
  await finish(chat.poll());
  server.faults.push(Object.defineProperties(new Response(null), { type: { value: 'opaqueredirect' }, ok: { value: false }, status: { value: 0 } }));
  const error = await failure(finish(chat.send('hello')));
  assert.equal(error.code, 'redirected');
  assert.match(explain(error), /led elsewhere/);
  assert.equal(server.count('POST'), 1);
});

test('giving up ends the wait', async () => {
  const { chat, server, clock, finish } = newTab();
  await finish(chat.poll());
  server.faults.push(refusal(429, 'rate_limited', { retry_after_ms: 60_000 }));
  const abort = new AbortController();
  const sent = chat.send('hello', { signal: abort.signal });
  await clock.advance(10);
  abort.abort();
  assert.equal((await failure(sent)).code, 'aborted');
  await clock.advance(120_000);
  assert.equal(server.count('POST'), 1);
});

test('a message given up while nobody knows whether it arrived is not doubled either', async () => {
  /** @type {((answer: () => Response) => Response)[][]} */
  const ways = [[lost, unreachable], [lost, () => refusal(500, 'storage')], [lost, ...Array(8).fill(() => html(503))]];
  for (const faults of ways) {
    const { chat, server, clock, finish } = newTab();
    await finish(chat.poll());
    server.faults.push(...faults);
    const abort = new AbortController();
    const sent = chat.send('hello', { signal: abort.signal });
    sent.catch(() => {});
    await clock.advance(100);
    if (faults[1] === unreachable) abort.abort();
    const error = await failure(finish(sent));
    assert.ok(error.detail.attempt, error.code);
    await finish(chat.resend(error));
    assert.equal([...server.threads.values()][0].length, 1, error.code);
  }
});

test('giving up a post that is on its way leaves open whether it arrived', async () => {
  const { chat, server, clock, finish } = newTab();
  await finish(chat.poll());
  const abort = new AbortController();
  server.faults.push((answer) => {
    answer();
    const { signal } = server.requests[server.requests.length - 1].init;
    return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted'))));
  });
  const sent = chat.send('hello', { signal: abort.signal });
  sent.catch(() => {});
  await clock.advance(10);
  abort.abort();
  const error = await failure(sent);
  assert.equal(error.code, 'aborted');
  await finish(chat.resend(error));
  assert.equal(server.count('POST'), 1);
});

test('a listener that throws does not end the watch', async () => {
  const { chat, server, clock } = newTab();
  server.faults.push(unreachable);
  let told = 0;
  const stop = chat.watch(() => {
    told++;
    throw new Error('of the listener');
  });
  await clock.advance(65_000);
  assert.equal(told, 3);
  stop();
});

test('reset leaves the old conversation, in every tab, and drops what is on its way', async () => {
  const storage = new FakeStorage();
  const server = new FakeServer();
  const [one, two] = [newTab({ storage, server }), newTab({ storage, server })];
  await one.finish(one.chat.send('old'));
  await two.finish(two.chat.agentRead());
  server.faults.push(refusal(429, 'rate_limited', { retry_after_ms: 5000 }));
  const waiting = two.chat.send('late');
  await two.clock.advance(100);
  await one.chat.reset();
  assert.equal((await failure(two.finish(waiting))).code, 'aborted');
  await two.finish(two.chat.send('new'));
  assert.deepEqual([...server.threads.values()].map((t) => t.map((m) => m.text)), [['old'], ['new']]);
  assert.equal([...storage.values.keys()].filter((k) => k.startsWith('webx11_chat_agent')).length, 0);
});

test('a page of the old conversation that arrives after a reset is not delivered', async () => {
  const { chat, server, storage, finish } = newTab();
  await finish(chat.send('old'));
  server.faults.push((answer) => {
    const page = answer();
    storage.setItem('webx11_chat_token', 'a'.repeat(64));
    return page;
  });
  assert.deepEqual((await finish(chat.poll())).messages, []);
});

test('watch polls every 30 seconds, rests when hidden and wakes at once', async () => {
  const { chat, server, clock, document } = newTab();
  const stop = chat.watch(() => {});
  await clock.advance(300);
  assert.equal(server.count('GET'), 1);
  await clock.advance(30_000);
  assert.equal(server.count('GET'), 2);
  document.become('hidden');
  await clock.advance(300_000);
  assert.equal(server.count('GET'), 2);
  document.become('visible');
  await settle();
  assert.equal(server.count('GET'), 3);
  stop();
  await clock.advance(300_000);
  assert.equal(server.count('GET'), 3);
  assert.equal(clock.timers.length, 0, 'nothing is left behind');
});

test('watch drains all pages before it rests', async () => {
  const { chat, server, clock, finish } = newTab();
  const { thread } = await finish(chat.send('q'));
  await finish(chat.poll());
  for (let i = 0; i < 120; i++) server.write(thread, 'hermes', `m${i}`);
  /** @type {string[]} */
  const seen = [];
  const stop = chat.watch(({ messages }) => seen.push(...messages.map((m) => m.text)));
  await clock.advance(1);
  assert.equal(seen.length, 120);
  assert.equal(new Set(seen).size, 120);
  stop();
});

test('watch with history tells each conversation from its beginning', async () => {
  const { chat, server, storage, clock, finish } = newTab();
  const { thread } = await finish(chat.send('m0'));
  for (let i = 1; i < 120; i++) server.write(thread, 'hermes', `m${i}`);
  while ((await finish(chat.poll())).messages.length > 0);
  const stored = storage.values.get('webx11_chat_state');
  /** @type {string[]} */
  const seen = [];
  const stop = chat.watch(({ messages }) => seen.push(...messages.map((m) => m.text)), { history: true });
  await clock.advance(1);
  assert.deepEqual(seen, Array.from({ length: 120 }, (_, i) => `m${i}`));
  assert.equal(storage.values.get('webx11_chat_state'), stored);
  stop();
});

test('watch polls soon after a message of one\'s own', async () => {
  const { chat, server, clock, finish } = newTab();
  const stop = chat.watch(() => {});
  await clock.advance(1000);
  const { thread } = await finish(chat.send('q'));
  const before = server.count('GET');
  server.write(thread, 'hermes', 'a');
  await clock.advance(5000);
  assert.ok(server.count('GET') > before);
  const answered = server.count('GET');
  await clock.advance(24_000);
  assert.equal(server.count('GET'), answered, 'when the answer is there, it is at rest again');
  stop();
});

test('watch out of view goes on only while an answer is due, if asked to', async () => {
  const { chat, server, clock, document, finish } = newTab();
  const { thread } = await finish(chat.send('q'));
  /** @type {string[]} */
  const seen = [];
  const stop = chat.watch(({ messages }) => seen.push(...messages.map((m) => m.text)), { hidden: 'awaiting' });
  await clock.advance(1);
  document.become('hidden');
  await clock.advance(31_000);
  server.write(thread, 'hermes', 'a');
  await clock.advance(31_000);
  assert.deepEqual(seen, ['q', 'a']);
  const polls = server.count('GET');
  await clock.advance(300_000);
  assert.equal(server.count('GET'), polls);
  stop();
});

test('watch tells of errors and waits, and goes on', async () => {
  const { chat, server, clock, finish } = newTab();
  await finish(chat.poll());
  server.faults.push(unreachable, html(503));
  /** @type {string[]} */
  const told = [];
  const stop = chat.watch(({ error, retryInMs }) => told.push(error ? `${error.code} ${retryInMs}` : 'ok'));
  await clock.advance(40_000);
  assert.deepEqual(told, ['network undefined', 'busy 1000', 'ok']);
  stop();
});

test('watch does not go on with a refused token, and begins anew after a reset', async () => {
  const { chat, server, clock } = newTab();
  server.faults.push(refusal(401, 'bad_token'));
  /** @type {(string | undefined)[]} */
  const told = [];
  const stop = chat.watch(({ error }) => told.push(error?.code));
  await clock.advance(200_000);
  assert.deepEqual(told, ['bad_token']);
  await chat.reset();
  await clock.advance(1);
  assert.deepEqual(told, ['bad_token', undefined]);
  assert.equal(server.count('GET'), 2);
  stop();
});

test('watch wakes when another tab got a message', async () => {
  const { chat, storage, server, window, clock } = newTab();
  const stop = chat.watch(() => {});
  await clock.advance(1000);
  const before = server.count('GET');
  const changed = async (/** @type {object} */ state) => {
    storage.setItem('webx11_chat_state', JSON.stringify(state));
    window.dispatchEvent(Object.assign(new Event('storage'), { key: 'webx11_chat_state' }));
    await settle();
  };
  await changed({ thread: await chat.thread(), cursor: 5 });
  assert.equal(server.count('GET'), before + 1);
  await changed({ thread: await chat.thread(), cursor: 0, open: true });
  assert.equal(server.count('GET'), before + 1, 'what else the page keeps there is no message');
  stop();
});

test('watch wakes when the browser takes the page out of its history', async () => {
  const { chat, server, window, clock } = newTab();
  const stop = chat.watch(() => {});
  await clock.advance(1000);
  const before = server.count('GET');
  for (const persisted of [false, true]) window.dispatchEvent(Object.assign(new Event('pageshow'), { persisted }));
  await settle();
  assert.equal(server.count('GET'), before + 1);
  stop();
});

/** A terminal that keeps what happens on it. */
function newTerminal(answer = true) {
  /** @type {Map<string, (line: string) => Promise<void>>} */
  const commands = new Map();
  /** @type {string[]} */
  const lines = [];
  /** @type {string[]} */
  const asked = [];
  return {
    commands, lines, asked,
    command: (/** @type {{name: string, run: (line: string) => Promise<void>}} */ { name, run }) => { commands.set(name, run); },
    print: (/** @type {string} */ text) => { lines.push(text); },
    confirm: (/** @type {string} */ question) => { asked.push(question); return answer; },
    run(/** @type {string} */ name, line = '') { return commands.get(name)?.(line) ?? assert.fail(name); },
  };
}

test('the commands are those of the contract and none is called chat', () => {
  const { chat } = newTab();
  const terminal = newTerminal();
  chat.register(terminal)();
  assert.deepEqual([...terminal.commands.keys()].sort(), ['feedback', 'feedback-inbox', 'hermes', 'hermes-poll', 'hermes-reset']);
  assert.equal(terminal.commands.get('hermes'), terminal.commands.get('feedback'));
  assert.equal(terminal.commands.get('hermes-poll'), terminal.commands.get('feedback-inbox'));
});

test('the commands send, show and reset', async () => {
  const { chat, server, finish } = newTab();
  const terminal = newTerminal();
  chat.register(terminal)();
  await finish(terminal.run('hermes'));
  await finish(terminal.run('hermes', 'hello there'));
  const thread = await chat.thread();
  await finish(terminal.run('hermes-poll'));
  await finish(terminal.run('hermes-poll'));
  server.write(thread, 'hermes', 'hi\u001b[2J');
  await finish(terminal.run('feedback-inbox'));
  await finish(terminal.run('hermes-reset'));
  await finish(terminal.run('feedback', 'x'.repeat(4001)));
  assert.notEqual(await chat.thread(), thread);
  assert.match(terminal.lines[1], /^sent, MSG-/);
  assert.deepEqual(terminal.lines.filter((l) => !l.startsWith('sent')), [
    'usage: hermes MESSAGE', 'operator: hello there', 'Hermes has not answered yet', 'hermes: hi⟦U+001B⟧[2J', 'a new conversation has begun',
    'The message is 1 characters too long; at most 4000 are allowed. Shorten it, nothing was sent.',
  ]);
  assert.match(terminal.asked[0], /old one becomes unreachable/);
});

test('hermes-reset changes nothing without a yes', async () => {
  const { chat, finish } = newTab();
  const terminal = newTerminal(false);
  chat.register(terminal)();
  const before = await finish(chat.thread());
  await finish(terminal.run('hermes-reset'));
  assert.equal(await chat.thread(), before);
});

test('a terminal prints what arrives, but not what was typed on it', async () => {
  const { chat, server, clock, finish } = newTab();
  const terminal = newTerminal();
  const stop = chat.register(terminal);
  await finish(terminal.run('hermes', 'q'));
  server.write(await chat.thread(), 'hermes', 'a');
  await clock.advance(31_000);
  assert.deepEqual(terminal.lines.slice(1), ['hermes: a']);
  stop();
});

test('the tool sends as agent and reads with a cursor of its own', async () => {
  const { chat, server, finish } = newTab();
  const { schema, handle } = chat.tool();
  assert.equal(schema.function.name, 'chat_hermes');
  assert.deepEqual(schema.function.parameters.properties.action.enum, ['send', 'read']);
  const sent = await finish(handle({ action: 'send', text: 'q' }));
  assert.ok('sent' in sent && sent.sent);
  const [thread] = server.threads.keys();
  server.write(thread, 'hermes', 'a\u{e0041}b');
  await finish(chat.poll());
  const read = await finish(handle('{"action":"read"}'));
  assert.deepEqual('messages' in read && read.messages.map((m) => [m.author, m.text]), [['agent', 'q'], ['hermes', 'a⟦U+E0041⟧b']]);
  const again = await finish(handle({ action: 'read' }));
  assert.deepEqual(again, { messages: [], awaiting: false, more: false });
  server.faults.push(Response.json({
    success: true, thread, messages: [{ id: 'x\u001b', epoch: 9e15, ts: '\u202e', author: 'her\u200bmes', text: '\ud800' }], awaiting: false, cursor: 9e15,
  }));
  assert.deepEqual((await finish(handle({ action: 'read' }))), {
    messages: [{ id: 'x⟦U+001B⟧', ts: '⟦U+202E⟧', author: 'her⟦U+200B⟧mes', text: '⟦U+D800⟧' }], awaiting: false, more: false,
  });
});

test('the tool answers an unusable call with an error for the model', async () => {
  const { chat, server, finish } = newTab();
  const { handle } = chat.tool();
  for (const args of [null, 'x', '[]', {}, { action: 'send' }, { action: 'send', text: 5 }, { action: 'chat' }]) {
    const answer = await finish(handle(args));
    assert.equal('error' in answer && answer.error, 'bad_arguments', JSON.stringify(args));
  }
  assert.equal(server.requests.length, 0);
  server.faults.push(refusal(401, 'bad_token'));
  const refused = await finish(handle({ action: 'read' }));
  assert.equal('error' in refused && refused.error, 'bad_token');
});

test('text is safe to look at, by the rules of the host\'s side', () => {
  const rows = [
    ['plain\n\ttext', 'plain\n\ttext'], ['a\r\nb', 'a\nb'], ['a\rb', 'a⟦U+000D⟧b'], ['\x1b]52;c;x\x07', '⟦U+001B⟧]52;c;x⟦U+0007⟧'],
    ['\x9b31m', '⟦U+009B⟧31m'], ['a\u202eb', 'a⟦U+202E⟧b'], ['\u2066x\u2069', '⟦U+2066⟧x⟦U+2069⟧'], ['a\u200bb', 'a⟦U+200B⟧b'],
    ['👨‍👩‍👧‍👦', '👨‍👩‍👧‍👦'], ['می‌خواهم', 'می‌خواهم'], ['a\u200db', 'a⟦U+200D⟧b'], ['❤️ 1️⃣', '❤️ 1️⃣'], ['a\ufe0f', 'a⟦U+FE0F⟧'],
    ['\u{e0072}', '⟦U+E0072⟧'], ['\u2028', '⟦U+2028⟧'], ['\ufeff', '⟦U+FEFF⟧'], ['\u3164', '⟦U+3164⟧'], ['\ue000', '⟦U+E000⟧'],
    ['中文，　可以。', '中文，　可以。'], ['e\u0301', 'e\u0301'], ['⟦U+0041⟧', '⟦U+0041⟧'],
    ['a' + '\u0301'.repeat(6), 'a' + '\u0301'.repeat(4) + '⟦U+0301⟧'.repeat(2)],
    ['\u200b'.repeat(4000), '⟦U+200B⟧'.repeat(4) + '⟦+3996⟧'],
  ];
  for (const [text, want] of rows) assert.equal(visible(text), want, JSON.stringify(text));
});

test('a wait is said in whole units, rounded up', () => {
  assert.deepEqual([1, 90_500, 119_500, 600_000, 7_200_001].map((ms) => duration(ms)), ['1 s', '91 s', '2 min', '10 min', '3 h']);
  assert.equal(duration(600_000, 'zh'), '10 分钟');
});
