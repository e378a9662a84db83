// Event types, their handlers, and the timers that these set: as a picture and as tables.
import { useState } from 'preact/hooks';
import { about, reading as path } from '../api';
import { useWidth } from '../chart';
import { FollowerLink } from '../links';
import { useReading } from '../live';
import { Code, Empty, Foreign, Read, Table, Tabs, Title } from '../parts';
import { address, toFollower } from '../route';
import { plural, visible, words } from '../text';
import type { EventType, Following, Topology as Answer } from '../types';

export const followerTabs: [string[], string][] = [[['followers'], 'List'], [['topology'], 'Topology']];

export function Topology({ store }: { store: string }) {
  const topology = useReading<Answer>(path(store, ['topology']));
  return (
    <>
      <Title text="Topology" reading={topology}><Tabs of="Followers" tabs={followerTabs} /></Title>
      <Read reading={topology}>{(found) => <Shown of={found} />}</Read>
    </>
  );
}

function Shown({ of }: { of: Answer }) {
  if (of.event_types.length + of.followers.length === 0) return <Empty>This store has no events and no followers yet.</Empty>;
  return (
    <>
      {!of.types_known && (
        <p class="quiet">
          <Foreign text={about()?.program ?? 'stela'} /> doesn't know the application's types: which of them projections, reactions and processes handle, and which
          timers they set, is shown by the application's own tool.
        </p>
      )}
      <Picture of={of} />
      <section aria-labelledby="types">
        <h2 id="types">Event types</h2>
        <Types of={of} />
      </section>
      {of.followers.length > 0 && (
        <section aria-labelledby="handlers">
          <h2 id="handlers">Followers</h2>
          <Followers rows={of.followers} />
        </section>
      )}
    </>
  );
}

// ---- Tables

const kindOf = (follower: Following): string => (follower.kind === 'async' || follower.kind === 'inline' ? `${follower.kind} projection` : follower.kind);
const sourceOf = (follower: Following): string => [follower.broker_stream, follower.filter].filter(Boolean).join(' ');
const handlersOf = (type: EventType, of: Answer): Following[] => of.followers.filter((each) => each.handles?.includes(type.type));

function Types({ of }: { of: Answer }) {
  const isSent = (type: EventType): boolean => of.outbox && type.publishes;
  return (
    <Table
      caption="Event types" rows={of.event_types} id={(row) => `${row.category} ${row.type}`}
      columns={[
        { head: 'Event type', names: true, long: true, cell: (row) => <a href={address(['events'], { type: row.type })}><Foreign text={row.type} /></a> },
        { head: 'Of streams', cell: (row) => (row.category === null ? '–' : <Foreign text={`${row.category}-…`} />) },
        { head: 'Published', cell: (row) => (isSent(row) ? <a href={address(['outbox'])}>by the outbox</a> : row.publishes ? 'no outbox' : 'no') },
        { head: 'Recorded', cell: (row) => (row.is_recorded ? 'yes' : 'not yet') },
        {
          head: 'Handled by', wraps: true, cell: (row) => {
            const all = handlersOf(row, of);
            if (all.length === 0) return of.types_known ? 'nobody' : '?';
            return all.map((each, index) => <>{index > 0 && ', '}<FollowerLink of={each.follower} /></>);
          },
        },
      ]}
    />
  );
}

function Names({ of }: { of: string[] | null }) {
  if (of === null) return <>?</>;
  return of.length === 0 ? <>–</> : <>{of.map((name, index) => <>{index > 0 && ', '}<Foreign text={name} /></>)}</>;
}

function Followers({ rows }: { rows: Following[] }) {
  return (
    <Table
      caption="Followers" rows={rows} id={(row) => `${row.kind} ${row.follower} ${row.broker_stream}`}
      columns={[
        { head: 'Follower', names: true, long: true, cell: (row) => <FollowerLink of={row.follower} /> },
        { head: 'Kind', cell: kindOf },
        { head: 'Here', cell: (row) => (row.is_in_database ? 'yes' : 'never ran') },
        { head: 'Handles', wraps: true, cell: (row) => (row.kind === 'consumer' ? <Code text={sourceOf(row)} /> : <Names of={row.handles} />) },
        { head: 'Sets timers', wraps: true, cell: (row) => (row.kind === 'consumer' ? '–' : <Names of={row.timers} />) },
      ]}
    />
  );
}

// ---- The picture

interface Node {
  id: string;
  text: string;
  under: string;
  href: string;
  column: number;
  y: number;
}
interface Drawn {
  nodes: Map<string, Node>;
  lines: [from: string, to: string][];
  height: number;
}

const row_px = 26;
const head_px = 24;
const most_drawn = 60;
const least_width = 600;
const outbox = 'outbox';

/** Each column from top to bottom, ordered by the first types that they handle. */
function drawn(of: Answer): Drawn {
  const columns: Omit<Node, 'column' | 'y'>[][] = [[], [], []];
  const lines: Drawn['lines'] = [];
  for (const { category, type } of of.event_types) {
    const same = columns[0]!.find((node) => node.id === `e ${type}`);
    if (same) same.under += `, ${category}`;
    else columns[0]!.push({ id: `e ${type}`, text: type, under: category ?? '', href: address(['events'], { type }) });
  }
  if (of.outbox) {
    columns[1]!.push({ id: outbox, text: 'Outbox', under: 'publishes', href: address(['outbox']) });
    for (const type of new Set(of.event_types.filter((each) => each.publishes).map((each) => each.type))) lines.push([`e ${type}`, outbox]);
  }
  for (const follower of of.followers) {
    const id = `f ${follower.kind} ${follower.follower}`;
    if (!columns[1]!.some((node) => node.id === id)) {
      columns[1]!.push({ id, text: follower.follower, under: kindOf(follower), href: toFollower(follower.follower) });
    }
    for (const type of follower.handles ?? []) lines.push([`e ${type}`, id]);
    if (follower.kind === 'consumer') {
      const source = sourceOf(follower);
      if (!columns[0]!.some((node) => node.id === `s ${source}`)) columns[0]!.push({ id: `s ${source}`, text: source, under: 'broker', href: toFollower(follower.follower) });
      lines.push([`s ${source}`, id]);
    }
    for (const kind of follower.timers ?? []) {
      columns[2]!.push({ id: `t ${follower.follower} ${kind}`, text: words(kind), under: 'timer', href: address(['timers'], { process: follower.follower }) });
      lines.push([id, `t ${follower.follower} ${kind}`]);
    }
  }
  const place = new Map(columns[0]!.map((node, index) => [node.id, index]));
  const mean = (id: string): number => {
    const places = lines.filter(([, to]) => to === id).map(([from]) => place.get(from) ?? 0);
    return places.length === 0 ? Infinity : places.reduce((sum, each) => sum + each, 0) / places.length;
  };
  columns[1]!.sort((a, b) => (mean(a.id) === mean(b.id) ? 0 : mean(a.id) - mean(b.id)));
  const order = columns[1]!.map((node) => node.id);
  const owner = (id: string): number => order.indexOf(lines.find(([, to]) => to === id)?.[0] ?? '');
  columns[2]!.sort((a, b) => owner(a.id) - owner(b.id));
  const most = Math.max(...columns.map((column) => column.length));
  const nodes = new Map<string, Node>();
  columns.forEach((column, number) => {
    column.forEach((node, index) => nodes.set(node.id, { ...node, column: number, y: head_px + ((index + 0.5) * most * row_px) / column.length }));
  });
  return { nodes, lines, height: head_px + most * row_px };
}

/** The tables give the same information to screen readers. */
function Picture({ of }: { of: Answer }) {
  const [box, width] = useWidth();
  const [at, setAt] = useState<string | null>(null);
  const isMuch = of.event_types.length + of.followers.length > most_drawn;
  if (isMuch) return <Empty>{plural(of.event_types.length, 'event type')} and {plural(of.followers.length, 'follower')} are too many for a picture.</Empty>;
  const { nodes, lines, height } = drawn(of);
  const begins = [0, 0.4, 0.78].map((part) => 9 + part * width);
  const ends = [0.28, 0.66, 1].map((part) => part * width - 1);
  const isLit = ([from, to]: [string, string]): boolean => from === at || to === at;
  const lit = new Set(lines.filter(isLit).flat());
  const line = ([from, to]: [string, string]) => {
    const a = nodes.get(from);
    const b = nodes.get(to);
    if (!a || !b) return null;
    const [x, end] = [ends[a.column]!, begins[b.column]! - 8];
    return <path key={`${from} ${to}`} class={isLit([from, to]) ? 'lit' : ''} d={`M${x} ${a.y}C${(x + end) / 2} ${a.y} ${(x + end) / 2} ${b.y} ${end} ${b.y}`} />;
  };
  return (
    <div class="topology" ref={box}>
      {width >= least_width && (
        <svg width={width} height={height} aria-hidden="true" onPointerLeave={() => setAt(null)}>
          {['Event types', 'Followers', 'Timers'].map((name, column) => <text key={name} class="under" x={begins[column]} y={12}>{name}</text>)}
          {lines.filter((each) => !isLit(each)).map(line)}
          {lines.filter(isLit).map(line)}
          {[...nodes.values()].map((node) => (
            <NodeOf key={node.id} node={node} from={begins[node.column]!} to={ends[node.column]!} isLit={node.id === at || lit.has(node.id)} enter={() => setAt(node.id)} />
          ))}
        </svg>
      )}
    </div>
  );
}

const letter_px = 7;

function NodeOf({ node, from, to, isLit, enter }: { node: Node; from: number; to: number; isLit: boolean; enter: () => void }) {
  const room = Math.floor((to - from - 8) / letter_px);
  const text = visible(node.text);
  const under = room - text.length > node.under.length + 2 ? node.under : '';
  return (
    <a href={node.href} tabindex={-1} onPointerEnter={enter}>
      <title>{`${text}, ${node.under}`}</title>
      <rect class={isLit ? 'lit' : ''} x={from - 8} y={node.y - row_px / 2 + 2} width={to - from + 8} height={row_px - 4} rx={4} />
      <text x={from} y={node.y + 4}>{text.length > room ? `${text.slice(0, room - 1)}…` : text}</text>
      {under !== '' && <text class="under" x={to - 8} y={node.y + 4} text-anchor="end">{visible(under)}</text>}
    </a>
  );
}
