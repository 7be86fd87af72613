// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failure, FakeServer, FakeStorage, html, newTab, refusal, settle, unreachable } from './fakes.js';

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
