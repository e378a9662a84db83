// The viewer's choices, stored in this browser.
import { effect, signal, type Signal } from '@preact/signals';

function kept<T>(name: string, otherwise: T): Signal<T> {
  const key = `stela.${name}`;
  let value = otherwise;
  try {
    const text = localStorage.getItem(key);
    if (text !== null) value = JSON.parse(text) as T;
  } catch {
    // Storage is off, or has an invalid value.
  }
  const chosen = signal(value);
  effect(() => {
    const text = JSON.stringify(chosen.value);
    try {
      localStorage.setItem(key, text);
    } catch {
      // The choice then holds for this page only.
    }
  });
  return chosen;
}

export type Theme = 'system' | 'light' | 'dark';
export const theme = kept<Theme>('theme', 'system');
export const utc = kept<boolean>('utc', false);
export const singleKeys = kept<boolean>('keys', true);

// Runs in the head, before the first paint.
effect(() => {
  const root = document.documentElement;
  if (theme.value === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme.value;
});
