// @ts-check
/** Questions that must be answered before something happens. */

import { byId } from './words.js';

/**
 * Asks, and returns what was chosen. Escape is no.
 * @param {{title: string, text: string, yes: string, no: string, address?: string}} question
 * @returns {Promise<boolean>}
 */
export function ask({ title, text, yes, no, address = '' }) {
  const dialog = byId('dialog', HTMLDialogElement);
  byId('dialog-title', HTMLHeadingElement).textContent = title;
  byId('dialog-text', HTMLParagraphElement).textContent = text;
  const shown = byId('dialog-address', HTMLParagraphElement);
  shown.textContent = address;
  shown.hidden = address === '';
  const accept = byId('dialog-yes', HTMLButtonElement);
  const refuse = byId('dialog-no', HTMLButtonElement);
  accept.textContent = yes;
  refuse.textContent = no;
  dialog.returnValue = '';
  accept.onclick = () => dialog.close('yes');
  refuse.onclick = () => dialog.close('');
  dialog.showModal();
  refuse.focus();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}

/**
 * Opens a link in a tab of its own that learns nothing of this one, if the
 * person, who sees the host as it is spelled on the wire, says so.
 * @param {URL} url
 * @param {import('./words.js').Words} words
 */
export async function follow(url, words) {
  const yes = await ask({
    title: words.say('linkTitle', { host: url.host }), text: words.say('linkText'),
    yes: words.say('linkYes'), no: words.say('linkNo'), address: url.href,
  });
  if (yes) window.open(url, '_blank', 'noopener,noreferrer');
}
