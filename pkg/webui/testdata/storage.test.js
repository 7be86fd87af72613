// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { threadOf } from '../assets/hermes-chat.js';
import { failure, FakeServer, FakeStorage, lost, newTab, slowStorages, unreachable } from './fakes.js';

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
