// The page's address: {base}s/{store}/{page…}?{parameters}.
import { signal } from '@preact/signals';

export interface Route {
  store: string | null;
  /** Decoded segments after the store. */
  page: string[];
  query: URLSearchParams;
  key: string | null;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function parsed(place: { pathname: string; search: string; hash: string }): Route {
  const base = new URL(document.baseURI).pathname;
  const inside = place.pathname.startsWith(base) ? place.pathname.slice(base.length) : '';
  const segments = inside.split('/').filter((segment) => segment !== '').map(decoded);
  const isStore = segments[0] === 's' && segments.length > 1;
  return {
    store: isStore ? segments[1]! : null,
    page: isStore ? segments.slice(2) : segments,
    query: new URLSearchParams(place.search),
    key: /^#k=(.+)$/.exec(place.hash)?.[1] ?? null,
  };
}

export const route = signal<Route>(parsed(location));

/** The address of a page, as an href relative to <base>. */
export function address(segments: string[], query: Record<string, string | number | null | undefined> = {}): string {
  const store = route.value.store ?? '';
  const path = ['s', store, ...segments].map(encodeURIComponent).join('/');
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return (segments.length === 0 ? `${path}/` : path) + (text === '' ? '' : `?${text}`);
}

export const toEvent = (sequence: number): string => address(['e', String(sequence)]);
export const toStream = (stream: string): string => address(['stream', stream]);
export const toCorrelation = (id: string): string => address(['c', id]);
export const toPartition = (partition: string): string => address(['outbox', partition]);
export const toFollower = (name: string): string => address(['followers', name]);

/** True if the address is this page. */
export const isHere = (href: string): boolean => new URL(href, document.baseURI).pathname === location.pathname;

export function go(href: string, options: { replace?: boolean } = {}): void {
  const target = new URL(href, document.baseURI);
  if (options.replace) history.replaceState(null, '', target);
  else history.pushState(null, '', target);
  arrive(true);
}

function arrive(isGone: boolean): void {
  const before = route.value;
  route.value = parsed(location);
  const isOtherPage = before.page.join('/') !== route.value.page.join('/') || before.store !== route.value.store;
  if (!isGone || !isOtherPage) return;
  scrollTo(0, 0);
  // Screen readers announce the new page's name.
  requestAnimationFrame(() => document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true }));
}

/** Changes parameters of this page. */
export function choose(changes: Record<string, string | null>): void {
  const query = new URLSearchParams(route.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(location.pathname + (text === '' ? '' : `?${text}`));
}

export function follow(): void {
  addEventListener('popstate', () => arrive(false));
  addEventListener('hashchange', () => arrive(false));
  document.addEventListener('click', (event) => {
    const link = (event.target as Element).closest?.('a[href]') as HTMLAnchorElement | null;
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlain || event.defaultPrevented || link.target !== '') return;
    if (link.origin !== location.origin || !link.pathname.startsWith(new URL(document.baseURI).pathname)) return;
    event.preventDefault();
    go(link.href);
  });
}
