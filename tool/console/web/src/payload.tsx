// An event's payload and metadata, as text.
import { useState } from 'preact/hooks';
import { about, hasPayloads } from './api';
import { count, pretty } from './text';
import type { StoredEvent } from './types';

const most_shown = 20_000;

export function Json({ value, label }: { value: unknown; label: string }) {
  const [isWhole, setIsWhole] = useState(false);
  const text = pretty(value);
  const isCut = text.length > most_shown && !isWhole;
  return (
    <div class="json">
      <pre tabIndex={0} role="region" aria-label={label}><bdi>{isCut ? text.slice(0, most_shown) : text}</bdi></pre>
      {isCut && <button type="button" onClick={() => setIsWhole(true)}>Show all {count(text.length)} characters</button>}
    </div>
  );
}

/** The actor in the event's metadata. */
export function actorOf(event: StoredEvent): string | null {
  const actor = event.metadata?.actor;
  return typeof actor === 'string' ? actor : null;
}

type Carrier = Pick<StoredEvent, 'payload' | 'payload_base64'>;

/** The text for data that the viewer's grants hide. */
export function Hidden() {
  const shown = about()?.grants?.payloads;
  if (hasPayloads()) return null;
  return <p class="quiet">{shown === 'none' ? "Not shown: needs the grant 'payloads'." : "Masked: keys, types and lengths are as they are; values need the grant 'payloads'."}</p>;
}

export function Content({ of, label }: { of: Carrier; label: string }) {
  if (about()?.grants?.payloads === 'none') return <Hidden />;
  return <><Hidden /><Shown of={of} label={label} /></>;
}

function Shown({ of, label }: { of: Carrier; label: string }) {
  if (of.payload_base64 !== null) return <Json value={of.payload_base64} label={`${label}, not JSON: Base64`} />;
  return <Json value={of.payload} label={label} />;
}

export function Payload({ event }: { event: StoredEvent }) {
  return (
    <>
      <h3>Payload</h3>
      <Content of={event} label="Payload" />
      {event.metadata !== null && about()?.grants?.payloads !== 'none' && <details><summary>Metadata</summary><Json value={event.metadata} label="Metadata" /></details>}
    </>
  );
}

// ---- Two versions beside each other

type Leaf = [path: string, value: string];

function leaves(value: unknown, path: string, into: Leaf[]): Leaf[] {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) into.push([path, JSON.stringify(value) ?? 'null']);
  else for (const [key, inner] of Object.entries(value)) leaves(inner, path === '' ? key : `${path}.${key}`, into);
  return into;
}

export interface Difference {
  path: string;
  before: string | null;
  after: string | null;
}

/** The differences, and how much is equal. Before the first version there is nothing. */
export function compare(before: unknown, after: unknown): { differences: Difference[]; same: number } {
  const old = new Map(before === undefined ? [] : leaves(before, '', []));
  const young = new Map(leaves(after, '', []));
  const paths = [...new Set([...old.keys(), ...young.keys()])];
  const differences = paths
    .map((path) => ({ path, before: old.get(path) ?? null, after: young.get(path) ?? null }))
    .filter(({ before: a, after: b }) => a !== b);
  return { differences, same: paths.length - differences.length };
}
