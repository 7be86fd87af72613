// @ts-check
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as module from '../assets/hermes-chat.js';
import { codePoints, explain, threadOf } from '../assets/hermes-chat.js';
import { failure, FakeServer, html, lost, newTab, refusal, unreachable } from './fakes.js';

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
