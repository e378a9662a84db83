// The frame of all pages: the location, the search field, and the viewer's choices.
import { signal, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { about, open, session } from './api';
import { JobDialog } from './job';
import { silentSince } from './live';
import { Announcements, Foreign, Mark } from './parts';
import { singleKeys, theme, utc, type Theme } from './preferences';
import { address, go, route } from './route';
import { sentence } from './text';
import { clock, exact } from './time';

export const entries: [segments: string[], name: string, key: string][] = [
  [[], 'Overview', 'o'],
  [['outbox'], 'Outbox', 'b'],
  [['events'], 'Events', 'e'],
  [['followers'], 'Followers', 'f'],
  [['timers'], 'Timers', 't'],
  [['log'], 'Log', 'l'],
];
/** The navigation entries for pages that are reached through others. */
const homes: Record<string, string> = { e: 'events', c: 'events', stream: 'events', topology: 'followers', find: '' };

const helpIsOpen = signal(false);

function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return element !== null && (/^(INPUT|SELECT|TEXTAREA)$/.test(element.tagName) || element.isContentEditable);
}

function useKeys(): void {
  useEffect(() => {
    let isGoing = false;
    const press = (event: KeyboardEvent): void => {
      if (!singleKeys.value || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector('dialog[open]')) return;
      const entry = isGoing ? entries.find(([, , key]) => key === event.key) : undefined;
      isGoing = event.key === 'g';
      if (entry && about()) go(address(entry[0]));
      else if (event.key === '/') document.querySelector<HTMLInputElement>('#find')?.focus();
      else if (event.key === '?') helpIsOpen.value = true;
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

function Choice({ of, name }: { of: Signal<boolean>; name: string }) {
  return (
    <label>
      <input type="checkbox" checked={of.value} onChange={(event) => (of.value = event.currentTarget.checked)} /> {name}
    </label>
  );
}

function Keys() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (helpIsOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [helpIsOpen.value]);
  return (
    <dialog ref={dialog} aria-labelledby="keys" onClose={() => (helpIsOpen.value = false)}>
      <h2 id="keys">Keys and display</h2>
      <dl class="keys">
        <dt><kbd>/</kbd></dt><dd>search</dd>
        <dt><kbd>?</kbd></dt><dd>this</dd>
        {entries.map(([, name, key]) => [<dt key={key}><kbd>g</kbd> <kbd>{key}</kbd></dt>, <dd key={name}>{name}</dd>])}
        <dt><kbd>←</kbd> <kbd>→</kbd></dt><dd>on a curve: through the minutes; with Shift by ten</dd>
      </dl>
      <Choice of={singleKeys} name="Single keys are on" />
      <Choice of={utc} name="Times in UTC" />
      <label>
        Appearance{' '}
        <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value as Theme)}>
          <option value="system">as the system</option>
          <option value="light">light</option>
          <option value="dark">dark</option>
        </select>
      </label>
      <form method="dialog"><button>Close</button></form>
    </dialog>
  );
}

function Search() {
  const field = useRef<HTMLInputElement>(null);
  const find = (event: Event): void => {
    event.preventDefault();
    const text = field.current!.value.trim();
    if (text !== '') go(address(['find'], { q: text }));
  };
  return (
    <form class="find" role="search" aria-label="Find" onSubmit={find}>
      <input
        id="find" ref={field} type="search" aria-label="Find an event, stream, partition, follower, …" placeholder="/ find …"
        defaultValue={route.value.query.get('q') ?? ''} autocomplete="off" spellcheck={false}
      />
    </form>
  );
}

function Stores() {
  const stores = about()?.stores ?? [];
  const store = route.value.store ?? '';
  if (stores.length < 2) return <Foreign text={store} class="store" />;
  return (
    <select class="store" aria-label="Store" value={store} onChange={(event) => go(`s/${encodeURIComponent(event.currentTarget.value)}/`)}>
      {stores.map((name) => <option key={name} value={name} selected={name === store}>{name}</option>)}
    </select>
  );
}

function Environment() {
  const { environment, color } = about() ?? { environment: null, color: null };
  const line = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (line.current && color !== null) line.current.style.borderColor = color;
  }, [color, environment]);
  return environment === null ? null : <div class="environment" ref={line}><Foreign text={environment} /></div>;
}

/** Tells that the data is an export, not a database in use. */
function FromExport() {
  const from = about()?.export;
  if (!from) return null;
  return (
    <p class="offline">
      This is what <Foreign text={from.file} class="code" /> holds; its last event is of {from.last_event_at === null ? 'no time' : exact(from.last_event_at)}.
    </p>
  );
}

export function Shell({ children }: { children: ComponentChildren }) {
  useKeys();
  const home = route.value.page[0] ?? '';
  const entry = homes[home] ?? home;
  const isOpen = about() !== null && route.value.store !== null;
  // Shown at once or not at all, so that nothing moves.
  if (session.value.state === 'opening') return <main />;
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('main')?.focus()}>To the content</button>
      <Environment />
      <FromExport />
      <header>
        <a class="brand" href={isOpen ? address([]) : ''}>Stela</a>
        {isOpen && <Stores />}
        {isOpen && (
          <nav aria-label="Pages">
            {entries.map(([segments, name]) => (
              <a key={name} href={address(segments)} aria-current={home !== 'find' && (segments[0] ?? '') === entry ? 'page' : undefined}>{name}</a>
            ))}
          </nav>
        )}
        {isOpen && <Search />}
        {isOpen && about()?.who && <span class="who"><Foreign text={about()!.who!} /></span>}
        <button type="button" class="help" aria-label="Keys and display" title="Keys and display" onClick={() => (helpIsOpen.value = true)}>?</button>
      </header>
      {silentSince.value !== null && session.value.state === 'open' && (
        <p class="banner" role="status">
          <Mark severity="unknown">The server hasn't answered</Mark> since {clock(new Date(silentSince.value).toISOString())}. What is
          shown is older; the page asks again by itself.
        </p>
      )}
      <main tabIndex={-1}>{children}</main>
      <Keys />
      <JobDialog />
      <Announcements />
    </>
  );
}

/** Shown instead of a page while there is no session. */
export function NoSession() {
  const now = session.value;
  useEffect(() => {
    if (now.state === 'open') return undefined;
    // A link opened in another tab also serves this one, and a server may come back.
    const again = (): void => {
      if (!document.hidden) void open(null);
    };
    addEventListener('focus', again);
    document.addEventListener('visibilitychange', again);
    const timer = now.state === 'silent' ? window.setInterval(again, 3000) : 0;
    return () => {
      removeEventListener('focus', again);
      document.removeEventListener('visibilitychange', again);
      window.clearInterval(timer);
    };
  }, [now.state]);
  if (now.state === 'silent') {
    return (
      <div class="place">
        <h1 tabIndex={-1}>The server doesn't answer</h1>
        <p>Nothing is known of the store now. This page asks again each 3 seconds.</p>
        <p>Is <code>stela serve</code> running, at this address?</p>
      </div>
    );
  }
  const ways = now.state === 'none' ? now.ways : [];
  return (
    <div class="place">
      <h1 tabIndex={-1}>This page has no session</h1>
      {now.state === 'none' && now.why !== '' && <p><Foreign text={sentence(now.why)} /></p>}
      {ways.includes('token') && <TokenForm />}
      {(ways.length === 0 || ways.includes('link')) && (
        <>
          <p>
            A link of <code>stela serve</code> opens one session, within five minutes. This one is used up or too old, or the server was
            restarted since.
          </p>
          <p>Start <code>stela serve</code> again: it prints a new link. Open that in this browser, and this page goes on, too.</p>
        </>
      )}
      {ways.includes('proxy') && <p>People come here through a proxy, which says who they are.</p>}
      <button type="button" onClick={() => void open(null)}>Look again</button>
    </div>
  );
}

/** A person's own token: sent to the server once, and not stored. */
function TokenForm() {
  const enter = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    void open({ token: String(new FormData(form).get('token')).trim() });
  };
  return (
    <form class="filters" onSubmit={enter} aria-label="Session">
      <label><span>Your token</span><input name="token" type="password" required autocomplete="off" /></label>
      <button type="submit">Open</button>
    </form>
  );
}
