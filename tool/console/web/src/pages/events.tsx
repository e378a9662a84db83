// Events by sequence, with filters; or live, as they are committed.
import { useEffect, useRef, useState } from 'preact/hooks';
import { reading as path } from '../api';
import { CorrelationLink, EventLink, StreamLink, orDash } from '../links';
import { useReading } from '../live';
import { announce, Clock, Empty, Filters, Foreign, Pager, Read, Table, Title } from '../parts';
import { choose, route } from '../route';
import { count, known, plural } from '../text';
import { actorOf } from '../payload';
import type { StoredEvent } from '../types';

const filters = ['type', 'category', 'stream', 'tag', 'correlation', 'causation', 'since', 'until'];

export function Events({ store }: { store: string }) {
  const isLive = route.value.query.has('live');
  return isLive ? <Tail store={store} /> : <List store={store} />;
}

function chosen(names: string[]): Record<string, string | null> {
  return Object.fromEntries(names.map((name) => [name, route.value.query.get(name)]));
}

function Fields({ isLive }: { isLive: boolean }) {
  const all = [
    { name: 'type', label: 'Type', hint: 'order.placed' },
    { name: 'category', label: 'Category', hint: 'order' },
    { name: 'stream', label: 'Stream', hint: 'order-7' },
    { name: 'tag', label: 'Tag', isOfPayloads: true },
    { name: 'correlation', label: 'Correlation' },
    { name: 'since', label: 'Since', hint: '1h' },
    { name: 'until', label: 'Until' },
  ];
  return (
    <Filters fields={isLive ? all.filter(({ name }) => ['type', 'category', 'stream'].includes(name)) : all}>
      <button type="button" aria-pressed={isLive} onClick={() => choose({ live: isLive ? null : '1', after: null })}>Live</button>
    </Filters>
  );
}

function Rows({ rows, none }: { rows: StoredEvent[]; none: string }) {
  if (rows.length === 0) return <Empty>{none}</Empty>;
  return (
    <Table
      caption="Events" rows={rows} id={(row) => row.sequence}
      columns={[
        { head: 'Sequence', names: true, cell: (row) => <EventLink of={row.sequence} /> },
        { head: 'Recorded', cell: (row) => <Clock at={row.recorded_at} /> },
        { head: 'Type', long: true, cell: (row) => <Foreign text={row.type} /> },
        { head: 'Stream', long: true, cell: (row) => <StreamLink of={row.stream} at={row.stream_version} /> },
        { head: 'Version', number: true, cell: (row) => count(row.stream_version) },
        { head: 'By', long: true, cell: (row) => orDash(actorOf(row)) },
        { head: 'Correlation', long: true, cell: (row) => <CorrelationLink id={row.correlation_id} /> },
      ]}
    />
  );
}

function List({ store }: { store: string }) {
  const { tag, ...options } = chosen([...filters, 'after']);
  const { type, since, until, after } = options;
  const words = tag ? ['tags', 'show', tag] : ['events', 'list'];
  const selection = tag ? { type, since, until, after } : options;
  const isOldestFirst = route.value.query.has('oldest-first');
  const events = useReading<StoredEvent[]>(path(store, words, { ...selection, limit: 100, 'newest-first': isOldestFirst ? null : 1 }));
  const head = useReading<{ head: number }>(path(store, ['events', 'head']), 2000);
  const came = Math.max(0, (head.data?.head ?? 0) - (events.asOf?.sequence ?? head.data?.head ?? 0));
  return (
    <>
      <Title text="Events" reading={events} />
      <Fields isLive={false} />
      {/* Its line is there from the start: nothing jumps when something came. */}
      <p class="came">
        {came === 0 ? `${known(head.data?.head)} events in all` : `${plural(came, 'event')} since then`}
        {came > 0 && <button type="button" onClick={events.reload}>Reload</button>}
      </p>
      <Read reading={events}>{(rows) => <Rows rows={rows} none="No event is like that, as far as was looked." />}</Read>
      <Pager reading={events} shown={events.data?.length ?? 0} />
    </>
  );
}

const most_kept = 500;

/** The newest events, followed by new ones as they are committed. */
function Tail({ store }: { store: string }) {
  const selection = chosen(['type', 'category', 'stream']);
  const first = useReading<StoredEvent[]>(path(store, ['events', 'list'], { ...selection, 'newest-first': 1, limit: 50 }));
  const start = useRef<StoredEvent[] | null>(null);
  const [rows, setRows] = useState<StoredEvent[]>([]);
  const [isPaused, setIsPaused] = useState(false);
  if (start.current !== first.data) {
    start.current = first.data;
    setRows([...(first.data ?? [])].reverse());
  }
  const last = rows.at(-1)?.sequence ?? (first.data === null ? null : 0);
  const following = path(store, ['events', 'list'], { ...selection, after: last, limit: 200 });
  const next = useReading<StoredEvent[]>(last === null || isPaused ? null : following, 1000);
  useEffect(() => {
    const fresh = (next.data ?? []).filter((row) => row.sequence > (last ?? 0));
    if (fresh.length === 0) return;
    const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
    setRows((before) => [...before, ...fresh].slice(-most_kept));
    announce(plural(fresh.length, 'new event'));
    if (isAtEnd) requestAnimationFrame(() => scrollTo(0, document.documentElement.scrollHeight));
  }, [next.data]);
  return (
    <>
      <Title text="Events, live" reading={next.data === null ? first : next} />
      <Fields isLive />
      <Read reading={first}>{() => <Rows rows={rows} none="Nothing is committed yet: events appear here as they are." />}</Read>
      <p class="pager">
        <span>{isPaused ? 'paused' : 'each second'}; the newest are at the end, {count(most_kept)} are kept</span>
        <button type="button" aria-pressed={isPaused} onClick={() => setIsPaused(!isPaused)}>Pause</button>
      </p>
    </>
  );
}
