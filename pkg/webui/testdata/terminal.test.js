// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { duration, visible } from '../assets/hermes-chat.js';
import { newTab, refusal } from './fakes.js';

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
