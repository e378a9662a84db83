// The parts that all pages share.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { hasPayloads } from './api';
import type { Reading } from './live';
import { address, choose, route } from './route';
import { clock, Clock, exact, localNow, roughly } from './time';
import { sentence, visible } from './text';
import type { Severity } from './types';

const shapes: Record<Severity, string> = { critical: '■', warning: '▲', unknown: '◌', known: '·', ok: '' };
const spoken: Record<Severity, string> = { critical: 'critical', warning: 'warning', unknown: 'not answered', known: 'known', ok: '' };

/** A deviation: a shape, a word and a colour. Normal states have none of them. */
export function Mark({ severity, children }: { severity: Severity; children?: ComponentChildren }) {
  if (severity === 'ok') return <span class="calm">{children}</span>;
  return (
    <span class={`mark ${severity}`}>
      <span class="shape" aria-hidden="true">{shapes[severity]}</span>
      {children === undefined || children === '' ? <span class="unseen">{spoken[severity]}</span> : <> {children}</>}
    </span>
  );
}

/** Text from the database: never markup, and without invisible characters. */
export function Foreign({ text, class: of = '' }: { text: string; class?: string }) {
  const shown = visible(text);
  return <bdi class={of} title={shown.length > 40 ? shown : undefined}>{shown}</bdi>;
}
export function Code({ text }: { text: string }) {
  return <Foreign text={text} class="code" />;
}

// ---- Copying

const said = signal('');
/** Announces a text to screen readers. */
export function announce(text: string): void {
  said.value = '';
  requestAnimationFrame(() => (said.value = text));
}
export function Announcements() {
  return <div class="unseen" role="status">{said}</div>;
}

export function Command({ line }: { line: string }) {
  const [copied, setCopied] = useState(false);
  const code = useRef<HTMLElement>(null);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(line);
    } catch {
      // The browser forbids copying here, so the text is selected instead.
      getSelection()?.selectAllChildren(code.current!);
      return;
    }
    setCopied(true);
    announce('Copied');
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <span class="command">
      <code ref={code}>{visible(line)}</code>
      <button type="button" class="small" onClick={() => void copy()} aria-label={`Copy: ${line}`}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </span>
  );
}

// ---- Tables

export interface Column<Row> {
  head: string;
  cell: (row: Row) => ComponentChildren;
  number?: boolean;
  /** True if the cell names its row. */
  names?: boolean;
  /** Grows with the window, and is cut off where necessary. */
  long?: boolean;
  /** True if it may wrap over several lines. */
  wraps?: boolean;
}

interface TableOf<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  id: (row: Row) => string | number;
  mark?: (row: Row) => string;
}

/** On a narrow screen a row is a block of lines. The roles are explicit, because that layout removes them. */
export function Table<Row>({ caption, columns, rows, id, mark }: TableOf<Row>) {
  const long = columns.filter((column) => column.long || column.wraps).length;
  return (
    <table role="table" class={`rows l${long}`}>
      <caption class="unseen">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => (
            <th key={column.head} role="columnheader" scope="col" class={column.number ? 'number' : ''}>{column.head}</th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={id(row)} role="row" class={mark?.(row) ?? ''}>
            {columns.map((column) => {
              const shape = (column.number ? 'number' : '') + (column.wraps ? ' long wraps' : column.long ? ' long' : '');
              return column.names ? (
                <th key={column.head} role="rowheader" scope="row" class={shape}>{column.cell(row)}</th>
              ) : (
                <td key={column.head} role="cell" class={shape} data-head={column.head}>{column.cell(row)}</td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

// ---- How old it is, and what isn't there

type Anything = Reading<unknown>;

export function isStale(reading: Anything): boolean {
  return reading.problem !== null && reading.data !== null;
}

export function AsOf({ reading }: { reading: Anything }) {
  const at = reading.asOf?.at;
  if (at === undefined) return null;
  const sequence = reading.asOf?.sequence;
  const tip = sequence === null || sequence === undefined ? exact(at) : `${exact(at)}, event ${sequence}`;
  if (!isStale(reading)) return <span class="asof">as of <time dateTime={at} title={tip}>{clock(at)}</time></span>;
  const silent = (localNow() - (reading.failingSince ?? localNow())) / 1000;
  return (
    <span class="asof">
      <Mark severity="unknown">not answered for {roughly(silent)}</Mark>, as of <time dateTime={at} title={tip}>{clock(at)}</time>
    </span>
  );
}

/** The page's name, followed by the age of its data. */
export function Title({ text, reading, children }: { text: string; reading?: Anything; children?: ComponentChildren }) {
  useEffect(() => {
    document.title = `${text} · ${route.value.store ?? ''} · Stela`;
  }, [text, route.value.store]);
  return (
    <div class="title">
      <h1 tabIndex={-1}><Foreign text={text} /></h1>
      {children}
      {reading && <AsOf reading={reading} />}
    </div>
  );
}

/** Shows the data that was read, or the reason why it is missing. */
export function Read<T>({ reading, children }: { reading: Reading<T>; children: (data: T) => ComponentChildren }) {
  if (reading.data !== null) return <div class={isStale(reading) ? 'stale' : 'fresh'}>{children(reading.data)}</div>;
  if (reading.problem !== null) return <Refused reading={reading} />;
  return <p class="quiet" role="status">{reading.isSlow ? 'Reading …' : '\u00a0'}</p>;
}

function Refused({ reading }: { reading: Anything }) {
  const problem = reading.problem!;
  if (problem.status === 404) return <p class="quiet">Not found: <Foreign text={problem.message} /></p>;
  if (problem.status === 403 || problem.status === 400) return <p class="quiet"><Foreign text={sentence(problem.message)} />.</p>;
  return (
    <div class="refused">
      <p><Mark severity="unknown">not answered:</Mark> <Foreign text={problem.message} /></p>
      <button type="button" onClick={reading.reload}>Ask again</button>
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="quiet">{children}</p>;
}

/** A part of a page without an answer, or, without a reason, one that the store lacks. */
export function NotAnswered({ why }: { why: string | null }) {
  if (why === null) return <p class="quiet">This store has none.</p>;
  return <p><Mark severity="unknown">not answered:</Mark> <Foreign text={why} /></p>;
}

// ---- Lists by the page

/** Below a list: whether there is more, according to the command. */
export function Pager({ reading, shown }: { reading: Reading<unknown[]>; shown: number }) {
  const { more } = reading;
  const first = ['after', 'before'].find((name) => route.value.query.has(name));
  // No answer is different from an empty list.
  if (reading.data === null) return null;
  return (
    <p class="pager">
      <span>{more && more.note !== '' ? <Foreign text={more.note} /> : `${shown} shown, ${more ? 'more' : 'that is all'}`}</span>
      {more && (
        <button type="button" onClick={() => choose({ [more.option]: more.value })}>{more.look_further ? 'Look further' : 'Next page'}</button>
      )}
      {first && <button type="button" onClick={() => choose({ [first]: null })}>First page</button>}
      <button type="button" onClick={reading.reload}>Reload</button>
    </p>
  );
}

// ---- Filters

export interface Field {
  name: string;
  label: string;
  options?: [string, string][];
  hint?: string;
  /** True if it compares with payloads. */
  isOfPayloads?: boolean;
}

/** Filters stored in the page's parameters. */
export function Filters({ fields, children }: { fields: Field[]; children?: ComponentChildren }) {
  const query = route.value.query;
  const apply = (event: Event): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const changes: Record<string, string | null> = { after: null, before: null };
    for (const { name } of fields) changes[name] = String(form.get(name) ?? '').trim();
    choose(changes);
  };
  return (
    <form class="filters" onSubmit={apply} key={query.toString()} role="search" aria-label="Filters">
      {fields.map((field) => (
        <label key={field.name}>
          <span>{field.label}</span>
          {field.options ? (
            <select
              name={field.name}
              defaultValue={query.get(field.name) ?? ''}
              onChange={(event) => (event.currentTarget as HTMLSelectElement).form?.requestSubmit()}
            >
              {field.options.map(([value, text]) => (
                <option key={value} value={value} selected={value === (query.get(field.name) ?? '')}>{text}</option>
              ))}
            </select>
          ) : (
            <input
              name={field.name} defaultValue={query.get(field.name) ?? ''} autocomplete="off" spellcheck={false}
              disabled={field.isOfPayloads && !hasPayloads()} placeholder={field.isOfPayloads && !hasPayloads() ? "grant 'payloads'" : field.hint}
            />
          )}
        </label>
      ))}
      <button type="submit">Filter</button>
      {children}
    </form>
  );
}

// ---- Tabs, which are pages of their own

export function Tabs({ of, tabs }: { of: string; tabs: [segments: string[], name: string, count?: string][] }) {
  const here = route.value.page.join('/');
  return (
    <nav class="tabs" aria-label={of}>
      {tabs.map(([segments, name, amount]) => (
        <a key={name} href={address(segments)} aria-current={segments.join('/') === here ? 'page' : undefined}>
          {name}{amount !== undefined && <span class="amount"> {amount}</span>}
        </a>
      ))}
    </nav>
  );
}

export { Clock };
