// @ts-check
/** What the page says, in two languages. */

/** @typedef {keyof typeof ENGLISH} Word */

const ENGLISH = {
  title: 'Hermes',
  language: '中文',
  languageName: '切换到中文',
  reset: 'New',
  resetName: 'New conversation',
  emptyTitle: 'Write to Hermes.',
  emptyWhat: 'Hermes, or a person at the host, answers here. That may take seconds or hours, and you may close the page meanwhile.',
  emptyWho: 'There is no account. Anyone who can reach this page can write, and the key to your conversation is in this browser alone: without it nobody can read it here, you included. Hermes and the operator read everything, so write nothing secret.',
  emptyKept: 'A conversation is not an archive: old messages are deleted.',
  operator: 'you',
  agent: 'page agent',
  hermes: 'hermes',
  awaiting: 'Waiting for Hermes',
  newer: 'New messages ↓',
  connecting: 'connecting',
  connected: 'connected',
  waiting: 'busy, trying again in {wait}',
  offline: 'no connection',
  failed: 'refused',
  textName: 'Message to Hermes',
  keys: 'Enter sends · Shift+Enter new line · ↑ earlier messages',
  send: 'Send',
  count: '{count} / {limit}',
  over: '{count} / {limit} · {over} too many',
  unstored: 'This browser stores nothing for this page. The conversation ends when you close it.',
  sending: 'sending…',
  checking: 'connection lost, looking whether it arrived…',
  limitedWait: 'Too many messages for now. This one is sent in {wait}.',
  busyWait: 'The server is busy. Sending again in {wait}.',
  again: 'Send again',
  edit: 'Edit',
  cancel: 'Cancel',
  resetTitle: 'Start a new conversation?',
  resetText: 'The old one becomes unreachable: its key is deleted, and nobody can read it from a browser any more.',
  resetYes: 'Start anew',
  resetNo: 'Keep it',
  resetDone: 'A new conversation has begun.',
  linkTitle: 'Open {host}?',
  linkText: 'A message leads there. Go only if you trust it.',
  linkYes: 'Open in a new tab',
  linkNo: 'Stay here',
  transcript: 'Conversation',
};

/** @type {Record<Word, string>} */
const CHINESE = {
  title: 'Hermes',
  language: 'English',
  languageName: 'Switch to English',
  reset: '新会话',
  resetName: '新会话',
  emptyTitle: '给 Hermes 写点什么。',
  emptyWhat: 'Hermes 或主机旁的人会在这里答复，可能几秒，也可能几小时，其间可以关闭页面。',
  emptyWho: '这里没有账号。能打开本页的人都能写消息。会话的密钥只在这个浏览器里，没有它，谁都无法在这里读到会话，包括您自己。Hermes 和管理员能看到全部内容，请勿写入机密。',
  emptyKept: '会话不是档案：旧消息会被删除。',
  operator: '我',
  agent: '页面助手',
  hermes: 'hermes',
  awaiting: '等待 Hermes 答复',
  newer: '新消息 ↓',
  connecting: '连接中',
  connected: '已连接',
  waiting: '繁忙，{wait}后重试',
  offline: '无连接',
  failed: '被拒绝',
  textName: '给 Hermes 的消息',
  keys: 'Enter 发送 · Shift+Enter 换行 · ↑ 以前的消息',
  send: '发送',
  count: '{count} / {limit}',
  over: '{count} / {limit} · 超出 {over} 个',
  unstored: '此浏览器不为本页保存数据，关闭页面后会话即结束。',
  sending: '发送中…',
  checking: '连接中断，正在查看是否已送达…',
  limitedWait: '消息过于频繁，这条将在{wait}后发送。',
  busyWait: '服务器繁忙，{wait}后重新发送。',
  again: '重新发送',
  edit: '编辑',
  cancel: '取消',
  resetTitle: '开始新会话？',
  resetText: '旧会话将无法再访问：它的密钥会被删除，任何浏览器都不能再读取。',
  resetYes: '开始新会话',
  resetNo: '保留',
  resetDone: '新会话已开始。',
  linkTitle: '打开 {host}？',
  linkText: '这是消息中的链接，信任它才打开。',
  linkYes: '在新标签页打开',
  linkNo: '留在这里',
  transcript: '会话',
};

const LANGUAGE_KEY = 'webx11_chat_lang';

/** The language of the page and its words. */
export class Words {
  constructor() {
    /** Making one takes long; a conversation needs hundreds. @type {Map<string, Intl.DateTimeFormat>} */
    this.formats = new Map();
    this.lang = stored() ?? (/^zh\b/i.test(navigator.languages?.[0] ?? navigator.language) ? 'zh' : 'en');
  }

  /** The tag of the language, for `lang` and for dates. */
  get tag() {
    return this.lang === 'zh' ? 'zh-CN' : 'en';
  }

  /** The day of a moment, in words. @param {Date} at */
  day(at) {
    return this.#format({ dateStyle: 'full' }).format(at);
  }

  /** The time of day, in hours and minutes. @param {Date} at */
  time(at) {
    return this.#format({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(at);
  }

  /** The day and the time with its zone. @param {Date} at */
  moment(at) {
    return this.#format({ dateStyle: 'full', timeStyle: 'long' }).format(at);
  }

  /** @param {Intl.DateTimeFormatOptions} options */
  #format(options) {
    const key = this.tag + JSON.stringify(options);
    const made = this.formats.get(key) ?? new Intl.DateTimeFormat(this.tag, options);
    this.formats.set(key, made);
    return made;
  }

  /**
   * Returns a text with its values filled in.
   * @param {Word} word
   * @param {Record<string, string | number>} [values]
   */
  say(word, values = {}) {
    const text = (this.lang === 'zh' ? CHINESE : ENGLISH)[word];
    return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
  }

  /** Changes to the other language and remembers it. */
  toggle() {
    this.lang = this.lang === 'zh' ? 'en' : 'zh';
    try {
      localStorage.setItem(LANGUAGE_KEY, this.lang);
    } catch {
      // It holds as long as the page.
    }
  }
}

function stored() {
  try {
    const lang = localStorage.getItem(LANGUAGE_KEY);
    return lang === 'en' || lang === 'zh' ? lang : null;
  } catch {
    return null;
  }
}

/**
 * Returns an element of the page by its id.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 */
export function byId(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}
