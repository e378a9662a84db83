// A stream: its events in order, the payload of one, and two versions side by side.
import { useRef } from 'preact/hooks';
import { about, reading as path, typed } from '../api';
import { EventLink } from '../links';
import { useReading, type Reading } from '../live';
import { Clock, Command, Empty, Foreign, Mark, Pager, Read, Table, Title } from '../parts';
import { compare, Content, Hidden, Json } from '../payload';
import { address, choose, route } from '../route';
import { duration } from '../time';
import { count, inShell, plural, reason, visible, words } from '../text';
import type { Message, StoredEvent } from '../types';
import { messageSeverity } from './outbox';

const page_rows = 200;
const rows_before = 8;

/** The version after which the page of an address begins. Null: with the newest. */
export function firstRow(query: URLSearchParams): string | null {
  const at = Number(query.get('at') ?? 0);
  return query.get('after') ?? (at > 0 ? String(at + rows_before) : null);
}

export const ofStream = (store: string, stream: string, after: string | null): string =>
  path(store, ['streams', 'show', stream], { 'newest-first': 1, limit: page_rows, after });

export function Stream({ store, stream }: { store: string; stream: string }) {
  const { query } = route.value;
  const at = Number(query.get('at') ?? 0);
  const other = Number(query.get('with') ?? 0);
  const anchor = useRef<string | null>(null);
  const shown = useRef<StoredEvent[]>([]);
  // The rows stay in place while the user moves from one to another.
  const isInView = at > 0 && shown.current.some((row) => row.stream_version === at);
  if (query.has('after') || !isInView) anchor.current = firstRow(query);
  const after = anchor.current;
  const events = useReading<StoredEvent[]>(ofStream(store, stream, after));
  shown.current = events.data ?? [];
  return (
    <>
      <Title text={stream} reading={events} />
      <Read reading={events}>
        {(rows) =>
          rows.length === 0 ? <Empty>This stream has no events there.</Empty> : (
            <Shown store={store} stream={stream} rows={rows} reading={events} at={at} other={other} isNewest={after === null} />
          )
        }
      </Read>
    </>
  );
}

interface Of {
  store: string;
  stream: string;
  rows: StoredEvent[];
  reading: Reading<StoredEvent[]>;
  at: number;
  other: number;
  /** True if the rows end with the stream's last version. */
  isNewest: boolean;
}

function later(rows: StoredEvent[], row: StoredEvent): string {
  const before = rows.find((each) => each.stream_version === row.stream_version - 1);
  return before === undefined ? '' : `+${duration((Date.parse(row.recorded_at) - Date.parse(before.recorded_at)) / 1000)}`;
}

function Shown({ store, stream, rows, reading, at, other, isNewest }: Of) {
  const chosen = rows.find((row) => row.stream_version === at) ?? rows[0]!;
  const isFar = other > 0 && !rows.some((row) => row.stream_version === other);
  const far = useReading<StoredEvent[]>(isFar ? path(store, ['streams', 'show', stream], { from: other, to: other }) : null);
  const second = isFar ? far.data?.[0] : rows.find((row) => row.stream_version === other);
  const newest = rows[0]!;
  const messages = useMessages(store, stream, rows);
  const show = (version: number | null): void => choose({ at: version === null ? null : String(version), after: null });
  return (
    <>
      <p class="quiet">
        {isNewest && `${plural(newest.stream_version, 'event')} · `}
        {rows.length < newest.stream_version || !isNewest ? `versions ${count(rows.at(-1)!.stream_version)} to ${count(newest.stream_version)} · ` : ''}category{' '}
        <a href={address(['events'], { category: stream.split('-')[0]! })}><Foreign text={stream.split('-')[0]!} /></a>
      </p>
      {at > 0 && at !== chosen.stream_version && !route.value.query.has('after') && (
        <p>There is no version {count(at)} here: this is {count(chosen.stream_version)}.</p>
      )}
      <form class="filters" aria-label="Version" onSubmit={(event) => {
        event.preventDefault();
        const form = new FormData(event.currentTarget);
        choose({ at: String(form.get('at')), with: String(form.get('with')), after: null });
      }} key={`${chosen.stream_version} ${other}`}>
        <label><span>Version</span><input name="at" inputmode="numeric" defaultValue={String(chosen.stream_version)} /></label>
        <label>
          <span>Compare with</span>
          <input
            name="with" inputmode="numeric" defaultValue={other === 0 ? '' : String(other)}
            placeholder={String(Math.max(1, chosen.stream_version - 1))}
          />
        </label>
        <button type="submit">Show</button>
        <button type="button" onClick={() => show(1)}>First</button>
        {chosen.stream_version > 1 && <button type="button" onClick={() => show(chosen.stream_version - 1)}>‹ Earlier</button>}
        <button type="button" onClick={() => show(chosen.stream_version + 1)}>Later ›</button>
        <button type="button" onClick={() => show(null)}>Last</button>
      </form>
      <div class="two">
        <div>
          <Table
            caption={`Events of ${visible(stream)}`} rows={rows} id={(row) => row.sequence}
            mark={(row) => (row === chosen ? 'here' : row === second ? 'second' : '')}
            columns={[
              { head: 'Version', names: true, cell: (row) => (
                <a
                  aria-current={row === chosen ? 'true' : undefined}
                  href={address(['stream', stream], { at: row.stream_version, with: other || null, after: route.value.query.get('after') })}
                >
                  {count(row.stream_version)}
                </a>
              ) },
              { head: 'Type', long: true, cell: (row) => (
                <><Foreign text={row.type} />{row.schema_version > 1 && <span class="quiet"> v{row.schema_version}</span>}</>
              ) },
              { head: 'Recorded', cell: (row) => <Clock at={row.recorded_at} /> },
              { head: 'Later by', number: true, cell: (row) => later(rows, row) },
              { head: 'Event', number: true, cell: (row) => <EventLink of={row.sequence} /> },
              { head: 'Message', cell: (row) => <Published row={row} message={messages.get(row.sequence)} /> },
            ]}
          />
          <Pager reading={reading} shown={rows.length} />
        </div>
        <div class="beside">
          {far.problem !== null && <p class="quiet"><Foreign text={far.problem.message} /></p>}
          {second === undefined ? (
            <Version of={chosen} />
          ) : (
            <Compared of={[chosen, second].sort((a, b) => a.stream_version - b.stream_version) as [StoredEvent, StoredEvent]} />
          )}
          {about()?.has_types && about()?.grants?.payloads !== 'none' && <State store={store} stream={stream} at={chosen.stream_version} />}
          <p class="commands"><Command line={typed(`streams show ${inShell(stream)}`)} /></p>
        </div>
      </div>
    </>
  );
}

/** The places of the messages of a stream's events. */
function useMessages(store: string, stream: string, rows: StoredEvent[]): Map<number, Message> {
  const isAsked = rows.some((row) => row.publishes);
  // The list goes backwards from there, like the rows.
  const options = { stream, limit: page_rows, 'newest-first': 1, after: rows[0]!.sequence + 1 };
  const read = (state: string | null, every: number) =>
    useReading<Message[]>(isAsked ? path(store, ['outbox', 'list'], { ...options, state }) : null, every);
  const lists = [read(null, 5000), read('published', 5000), read('discarded', 0)];
  return new Map(lists.flatMap(({ data }) => (data ?? []).map((message): [number, Message] => [message.sequence, message])));
}

function Published({ row, message }: { row: StoredEvent; message: Message | undefined }) {
  if (!row.publishes) return <>local</>;
  if (message === undefined) return <span class="quiet">to publish</span>;
  const { state, broker_from: from, broker_to: to } = message;
  return <><Mark severity={messageSeverity(state)}>{words(state)}</Mark>{from !== null && from === to && ` #${count(from)}`}</>;
}

function Version({ of }: { of: StoredEvent }) {
  return (
    <div>
      <h2>Version {count(of.stream_version)}: <Foreign text={of.type} /></h2>
      <Content of={of} label={`Payload of version ${of.stream_version}`} />
    </div>
  );
}

interface OfDifferences {
  before: unknown;
  after: unknown;
  heads: [string, string];
}

function Differences({ before, after, heads: [first, second] }: OfDifferences) {
  const value = (text: string | null) => (text === null ? <span class="quiet">absent</span> : <Foreign text={text} class="code" />);
  const { differences, same } = compare(before, after);
  return (
    <>
      <p class="quiet">{plural(differences.length, 'value differs', 'values differ')}, {count(same)} {same === 1 ? 'is' : 'are'} the same.</p>
      {differences.length > 0 && (
        <Table
          caption="What differs" rows={differences} id={(row) => row.path}
          columns={[
            { head: 'Value', names: true, long: true, cell: (row) => <Foreign text={row.path} class="code" /> },
            { head: first, long: true, cell: (row) => value(row.before) },
            { head: second, long: true, cell: (row) => value(row.after) },
          ]}
        />
      )}
    </>
  );
}

function Compared({ of: [first, second] }: { of: [StoredEvent, StoredEvent] }) {
  return (
    <>
      <h2>Versions {count(first.stream_version)} and {count(second.stream_version)}</h2>
      <Differences
        before={first.payload} after={second.payload} heads={[`In ${first.stream_version}`, `In ${second.stream_version}`]}
      />
      <div class="pair">
        {[first, second].map((event) => <Version key={event.sequence} of={event} />)}
      </div>
    </>
  );
}

interface StateOf {
  stream_version: number;
  state: unknown;
}

/** The state before and after an event, decoded with the application's types. */
function State({ store, stream, at }: { store: string; stream: string; at: number }) {
  const after = useReading<StateOf>(path(store, ['streams', 'state', stream], { at }));
  const before = useReading<StateOf>(at > 1 && after.problem === null ? path(store, ['streams', 'state', stream], { at: at - 1 }) : null);
  // For a moment the previous answer is shown, which is of another version.
  const isBoth = after.data?.stream_version === at && (at === 1 || before.data?.stream_version === at - 1);
  if (after.problem !== null && after.problem.status !== 0 && after.data === null) {
    return <><h2>State</h2><Empty><Foreign text={reason(after.problem.message)} /></Empty></>;
  }
  return (
    <>
      <h2>State after {count(after.data?.stream_version ?? at)}</h2>
      <Hidden />
      <Read reading={after}>
        {(found) => (
          <>
            {isBoth && <Differences before={at === 1 ? undefined : before.data!.state} after={found.state} heads={['Before', 'After']} />}
            <Json value={found.state} label={`State after version ${found.stream_version}`} />
          </>
        )}
      </Read>
    </>
  );
}
