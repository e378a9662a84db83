// Formats numbers and foreign text.

const narrow_space = '\u202f';

/** 1 204 331 */
export function count(value: number): string {
  const digits = String(Math.trunc(Math.abs(value)));
  const grouped = digits.length > 4 ? digits.replace(/\B(?=(\d{3})+$)/g, narrow_space) : digits;
  return (value < 0 ? '−' : '') + grouped;
}

/** "?" means no answer: never a zero. */
export function known(value: number | null | undefined, isLowerBound = false): string {
  if (value === null || value === undefined) return '?';
  return count(value) + (isLowerBound ? '+' : '');
}

/** 412 · 3.2 · 0.05 · 0 */
export function rate(value: number): string {
  if (value === 0) return '0';
  if (value < 0.095) return value < 0.005 ? '<0.01' : value.toFixed(2);
  return value < 9.95 ? value.toFixed(1) : count(Math.round(value));
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

// Characters that turn or hide the text beside them: controls, and marks of direction.
const invisible = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Text of the database with invisible characters made visible. */
export function visible(text: string): string {
  return text.replace(invisible, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export function pretty(value: unknown): string {
  return visible(JSON.stringify(value, null, 2) ?? 'null');
}

/** Quotes a word for a command line. */
export function inShell(word: string): string {
  return /^[\w.:/@+,=%-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** "broker_lost" → "broker lost" */
export const words = (code: string): string => code.replaceAll('_', ' ');

/** The error without the name of its program. */
export const reason = (error: string): string => sentence(error.replace(/^[\w.-]+: /, ''));

/** The tool's sentences begin in lower case, because there they follow a name. */
export function sentence(text: string): string {
  return text.replace(/^[a-z](?=[a-z]* )/, (letter) => letter.toUpperCase());
}
