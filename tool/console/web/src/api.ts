// Requests to the server, and the session that each of them needs.
import { signal } from '@preact/signals';
import type { About, Envelope } from './types';

/** The reason for a missing answer: the server's own words, or its silence (status 0). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    detail: string,
    /** The ways to get a session here: a link, a token, a proxy. */
    readonly ways: string[] = [],
  ) {
    super(detail);
  }
}

export type Session = { state: 'opening' } | { state: 'open'; about: About } | { state: 'none'; why: string; ways: string[] } | { state: 'silent' };
export const session = signal<Session>({ state: 'opening' });

export function about(): About | null {
  return session.value.state === 'open' ? session.value.about : null;
}

/** True if payloads, and texts that may quote them, are shown unmasked. */
export const hasPayloads = (): boolean => (about()?.grants?.payloads ?? 'full') === 'full';

/** The command as it is typed here: an application has its own program. */
export const typed = (words: string): string => `${about()?.program ?? 'stela'} ${words}`;

// Cookies go to every port of a host, but a page's storage doesn't.
const tokenPlace = `stela token ${new URL(document.baseURI).pathname}`;

export function token(): string {
  try {
    return localStorage.getItem(tokenPlace) ?? '';
  } catch {
    return '';
  }
}

const patience_ms = 20_000;

async function send(path: string, options: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(new URL(`api/v1/${path}`, document.baseURI), {
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      ...options,
      signal: AbortSignal.any([AbortSignal.timeout(patience_ms), ...(options.signal ? [options.signal] : [])]),
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    const isLate = error instanceof DOMException && error.name === 'TimeoutError';
    throw new Problem(0, isLate ? `The server hasn't answered for ${patience_ms / 1000} s.` : "The server can't be reached.");
  }
  if (response.ok || response.status === 304) return response;
  throw await problemOf(response);
}

async function problemOf(response: Response): Promise<Problem> {
  const unsaid = `The server answered with ${response.status}.`;
  try {
    const { detail, title, ways } = (await response.json()) as { detail?: string; title?: string; ways?: string[] };
    return new Problem(response.status, detail ?? title ?? unsaid, ways);
  } catch {
    return new Problem(response.status, unsaid);
  }
}

async function enter(proof: { key?: string; token?: string }): Promise<void> {
  const headers = { 'Content-Type': 'application/json' };
  const opened = await send('session', { method: 'POST', headers, body: JSON.stringify(proof) });
  localStorage.setItem(tokenPlace, ((await opened.json()) as { token: string }).token);
}

async function look(): Promise<void> {
  const response = await send('session', { headers: { 'Stela-Token': token() } });
  session.value = { state: 'open', about: (await response.json()) as About };
}

/** Opens the session: with a link's key or a person's token, else with an earlier session's token, else through a proxy. */
export async function open(proof: { key?: string; token?: string } | null): Promise<void> {
  try {
    if (proof !== null) await enter(proof);
    try {
      await look();
    } catch (error) {
      if (!(error instanceof Problem) || !error.ways.includes('proxy')) throw error;
      await enter({});
      await look();
    }
  } catch (error) {
    const problem = error instanceof Problem ? error : new Problem(0, String(error));
    if (problem.status === 0) session.value = { state: 'silent' };
    else session.value = { state: 'none', why: proof === null ? '' : problem.message, ways: problem.ways };
  }
}

/** Requests sent before the session is known to exist, to save time. */
const begun = new Map<string, Promise<Response | null>>();
export function begin(path: string): void {
  if (token() === '') return;
  begun.set(path, send(path, { headers: { 'Stela-Token': token() } }).catch(() => null));
}

async function read(path: string, options: RequestInit): Promise<Response> {
  const early = begun.get(path);
  begun.delete(path);
  return (await early) ?? send(path, options);
}

export interface Answer<T> {
  /** Null if nothing has changed since the answer with this tag. */
  envelope: Envelope<T> | null;
  tag: string | null;
}

export async function ask<T>(path: string, options: { tag?: string | null; signal?: AbortSignal } = {}): Promise<Answer<T>> {
  const used = token();
  const headers: Record<string, string> = { 'Stela-Token': used };
  if (options.tag) headers['If-None-Match'] = options.tag;
  try {
    const response = await read(path, options.signal ? { headers, signal: options.signal } : { headers });
    const tag = response.headers.get('ETag');
    if (response.status === 304) return { envelope: null, tag: tag ?? options.tag ?? null };
    const body = (await response.json()) as Envelope<T> | T;
    const isBare = typeof body !== 'object' || body === null || !('as_of' in body && 'data' in body);
    return { envelope: isBare ? { as_of: { sequence: null, at: new Date().toISOString() }, data: body as T } : (body as Envelope<T>), tag };
  } catch (error) {
    // Another tab may have opened a session since, so the token may be another one.
    if (error instanceof Problem && error.status === 401 && token() === used) {
      await open(null);
    }
    throw error;
  }
}

/** Changes something. Sent only once, whatever the answer. */
export async function post<T>(path: string, body: object): Promise<T> {
  const headers = { 'Stela-Token': token(), 'Content-Type': 'application/json' };
  const response = await send(path, { method: 'POST', headers, body: JSON.stringify(body) });
  return (await response.json()) as T;
}

export type Parameters = Record<string, string | number | null | undefined>;

/** The path of a reading command: its words, operands and options. */
export function reading(store: string, words: string[], options: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) {
    if (value !== null && value !== undefined && value !== '') query.set(name, String(value));
  }
  // The server takes a plus sign literally.
  const text = query.toString().replaceAll('+', '%20');
  return ['s', store, ...words].map(encodeURIComponent).join('/') + (text === '' ? '' : `?${text}`);
}
