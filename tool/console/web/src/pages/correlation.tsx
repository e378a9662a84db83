// The effects of one request: a lane for each stream, arrows from causes to effects, and an outline of the same.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { reading as path, typed } from '../api';
import { StreamLink } from '../links';
import { useReading } from '../live';
import { Command, Empty, Pager, Read, Title } from '../parts';
import { address, route, toEvent } from '../route';
import { count, inShell, plural, visible } from '../text';
import { duration, exact } from '../time';
import type { StoredEvent, Twig } from '../types';
import { Tree } from './event';
import { messageSeverity } from './outbox';

const page_rows = 200;
const most_trees = 10;
/** Beyond this number, trees are read only once. */
const most_followed = 3;

export function Correlation({ store, id }: { store: string; id: string }) {
  const after = route.value.query.get('after');
  const events = useReading<StoredEvent[]>(path(store, ['events', 'list'], { correlation: id, limit: page_rows, after }), 5000);
  return (
    <>
      <Title text={`Correlation ${id}`} reading={events} />
      <Read reading={events}>{(rows) => (rows.length === 0 ? <Empty>No event has this correlation, as far as was looked.</Empty> : <Shown store={store} rows={rows} />)}</Read>
      <Pager reading={events} shown={events.data?.length ?? 0} />
      <p class="commands">
        <Command line={typed(`events list --correlation ${inShell(id)}`)} /> <a href={address(['events'], { correlation: id })}>as a list</a>
      </p>
    </>
  );
}

type Trees = ReadonlyMap<number, Twig[]>;

function Shown({ store, rows }: { store: string; rows: StoredEvent[] }) {
  const [trees, setTrees] = useState<Trees>(new Map());
  const layout = useMemo(() => layoutOf(rows), [rows]);
  const span = (Date.parse(rows.at(-1)!.recorded_at) - Date.parse(rows[0]!.recorded_at)) / 1000;
  const roots = rows.filter((row) => !layout.places.has(row.causation_id ?? ''));
  const twigs = roots.flatMap(({ sequence }) => trees.get(sequence) ?? []);
  const states = new Map(twigs.map(({ sequence, state }) => [sequence, state]));
  const keep = (root: number, found: Twig[]): void => setTrees((before) => new Map([...before, [root, found]]));
  return (
    <>
      <p class="quiet">
        {plural(rows.length, 'event')} in {plural(layout.lanes.length, 'stream')}, within {duration(span)}, from {exact(rows[0]!.recorded_at)}
      </p>
      <Lanes layout={layout} states={states} />
      <section aria-labelledby="outline">
        <h2 id="outline">Causes and effects</h2>
        {roots.slice(0, most_trees).map(({ sequence }) => <Root key={sequence} store={store} of={sequence} keep={keep} every={roots.length > most_followed ? 0 : 5000} />)}
        {twigs.length > 0 && <Tree twigs={twigs.map((twig) => ({ ...twig, is_asked: false }))} />}
        {roots.length > most_trees && <Empty>{count(roots.length - most_trees)} more have no cause here: they are in the list.</Empty>}
      </section>
    </>
  );
}

/** The effects of each event without a cause are read separately; all of them form one table. */
function Root({ store, of, keep, every }: { store: string; of: number; keep: (root: number, found: Twig[]) => void; every: number }) {
  const tree = useReading<Twig[]>(path(store, ['events', 'tree', String(of)], { limit: page_rows }), every);
  useEffect(() => {
    if (tree.data !== null) keep(of, tree.data);
  }, [JSON.stringify(tree.data)]);
  return tree.data === null ? <Read reading={tree}>{() => null}</Read> : null;
}

// ---- Lanes

interface Place {
  event: StoredEvent;
  x: number;
  y: number;
}
interface Layout {
  lanes: string[];
  /** By the event's id. */
  places: Map<string, Place>;
  /** Pauses long enough for a label, at their middle. */
  pauses: { x: number; text: string }[];
  width: number;
  /** True if there is space for the types. */
  isNamed: boolean;
}

const lane_px = 40;
const least_step_px = 28;
const most_step_px = 120;
const head_px = 20;

/** Events are ordered by time. A longer pause is wider, and labelled with its length. */
function layoutOf(rows: StoredEvent[]): Layout {
  const lanes = [...new Set(rows.map((row) => row.stream))];
  const step_px = Math.max(least_step_px, Math.min(most_step_px, 1000 / rows.length));
  const places = new Map<string, Place>();
  const pauses: Layout['pauses'] = [];
  let x = 0;
  let before: StoredEvent | null = null;
  for (const event of rows) {
    const pause_s = before === null ? 0 : (Date.parse(event.recorded_at) - Date.parse(before.recorded_at)) / 1000;
    const step = step_px + (pause_s < 1 ? 0 : Math.min(80, 44 + 8 * Math.log10(pause_s)));
    if (pause_s >= 1) pauses.push({ x: x + step / 2, text: `+${duration(pause_s)}` });
    x += before === null ? step_px / 2 : step;
    places.set(event.id, { event, x, y: head_px + lane_px * (lanes.indexOf(event.stream) + 0.5) });
    before = event;
  }
  return { lanes, places, pauses, width: x + step_px / 2, isNamed: step_px >= 100 };
}

function arrow(from: Place, to: Place): string {
  const reach = Math.max(12, (to.x - from.x) / 2);
  // Bends over the events between them in one lane.
  if (from.y === to.y) {
    const rise = lane_px / 2 - 4;
    return `M${from.x + 5} ${from.y - rise / 4}Q${(from.x + to.x) / 2} ${from.y - rise} ${to.x - 7} ${to.y - rise / 4}`;
  }
  return `M${from.x + 5} ${from.y}C${from.x + reach} ${from.y} ${to.x - reach} ${to.y} ${to.x - 7} ${to.y}`;
}

/** The outline gives the same information to screen readers. */
function Lanes({ layout: { lanes, places, pauses, width, isNamed }, states }: { layout: Layout; states: ReadonlyMap<number, string> }) {
  const all = [...places.values()];
  const height = head_px + lane_px * lanes.length;
  return (
    <div class="lanes">
      <ul>{lanes.map((stream) => <li key={stream}><StreamLink of={stream} /></li>)}</ul>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Events by stream and time; the outline below says the same">
        <svg width={width} height={height} aria-hidden="true">
          <defs>
            <marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6z" /></marker>
          </defs>
          {lanes.map((stream, lane) => <line key={stream} class="axis" x1={0} x2={width} y1={head_px + lane_px * (lane + 0.5)} y2={head_px + lane_px * (lane + 0.5)} />)}
          {pauses.map(({ x, text }) => <text key={x} x={x} y={12}>{text}</text>)}
          {all.map((place) => {
            const cause = places.get(place.event.causation_id ?? '');
            return cause && <path key={place.event.id} class="arrow" d={arrow(cause, place)} marker-end="url(#tip)" />;
          })}
          {isNamed && all.map(({ event: { id, type }, x, y }) => <text key={id} x={x} y={y + 17}>{visible(type.length > 19 ? `${type.slice(0, 18)}…` : type)}</text>)}
          {all.map(({ event, x, y }) => <Dot key={event.id} event={event} x={x} y={y} state={states.get(event.sequence)} />)}
        </svg>
      </div>
    </div>
  );
}

function Dot({ event, x, y, state }: Place & { state: string | undefined }) {
  const isWrong = state !== undefined && messageSeverity(state) !== 'ok';
  return (
    <a href={toEvent(event.sequence)} tabindex={-1}>
      <title>{`${event.sequence} ${visible(event.type)}, ${exact(event.recorded_at)}${state === undefined ? '' : `, ${state}`}`}</title>
      <rect x={x - 12} y={y - 12} width={24} height={24} fill="transparent" />
      {isWrong ? <path class="dot wrong" d={`M${x} ${y - 6}l6 11h-12z`} /> : <circle class={`dot ${event.publishes ? 'sent' : ''}`} cx={x} cy={y} r={5} />}
    </a>
  );
}
