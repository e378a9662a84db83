// Projections, reactions, processes and consumers in one list: all followers of events.
import { ofConsumer, ofLetter, ofParkedEvent, ofProjector, ofRebuild } from '../actions';
import { useMemo } from 'preact/hooks';
import { about, reading as path } from '../api';
import { Chart, complete, perSecond, Spark, type Curve } from '../chart';
import { bySubject, Line, Worst } from '../finding';
import { Acts } from '../job';
import { EventLink, FollowerLink, orDash } from '../links';
import { useReading } from '../live';
import { Empty, Facts, Foreign, Mark, NotAnswered, Pager, Read, Table, Tabs, Title } from '../parts';
import { address, route, toEvent } from '../route';
import { consumerState, projectorState, type State } from '../states';
import { Ago, duration } from '../time';
import { count, known, plural, rate, words } from '../text';
import { followerTabs } from './topology';
import type { Action } from '../actions';
import type { Check, Consumer, Finding, FollowerMinute, ParkedEvent, Process, Projector } from '../types';

interface Row {
  name: string;
  kind: string;
  version: string;
  state: State;
  position: number;
  lag_events: number | null;
  lag_s: number | null;
  owner: string | null;
  parked: number;
  failing: number | null;
}

const kindOf = (projector: Projector): string => (projector.kind === 'reaction' ? 'reaction' : `${projector.kind} projection`);

function rowsOf(projectors: Projector[], processes: Process[], consumers: Consumer[], findings: Map<string, Finding>): Row[] {
  const isProcess = new Set(processes.map((process) => process.process));
  return [
    ...projectors.map((each) => ({
      ...each, name: each.projector, kind: isProcess.has(each.projector) ? 'process' : kindOf(each),
      version: `v${each.projector_version}${each.build > 1 ? `, build ${each.build}` : ''}`,
      state: projectorState(each, findings.get(each.projector)),
    })),
    ...consumers.map((each) => ({
      ...each, name: each.consumer, kind: 'consumer', version: each.broker_stream,
      state: consumerState(each, findings.get(each.consumer)), lag_events: null, lag_s: null,
    })),
  ];
}

const none: { at: string; text: string }[] = [];

function curvesOf(rows: FollowerMinute[]): [handled: Curve, behind: Curve] {
  return [
    { name: 'handled', values: perSecond(rows.map((row) => row.handled), 60), show: (value) => `${rate(value)} /s` },
    { name: 'lag', values: rows.map((row) => row.lag_s), show: duration },
  ];
}

export function Followers({ store }: { store: string }) {
  const projectors = useReading<Projector[]>(path(store, ['projections', 'status']), 2000);
  const processes = useReading<Process[]>(path(store, ['processes', 'list']), 5000);
  const consumers = useReading<Consumer[]>(path(store, ['inbox', 'status']), 2000);
  const check = useReading<Check>(path(store, ['check']), 5000);
  const history = useReading<FollowerMinute[]>(path(store, ['projections', 'history']), 30_000);
  const findings = bySubject(check.data?.findings ?? []);
  return (
    <>
      <Title text="Followers" reading={projectors}><Tabs of="Followers" tabs={followerTabs} /></Title>
      <Read reading={projectors}>
        {(found) => {
          const rows = rowsOf(found, processes.data ?? [], consumers.data ?? [], findings);
          return rows.length === 0 ? <Empty>No projector, reaction, process or consumer is registered here.</Empty> : <Rows rows={rows} minutes={history.data ?? []} />;
        }}
      </Read>
      {consumers.problem !== null && <NotAnswered why={`consumers: ${consumers.problem.message}`} />}
      <ul class="others">
        {(check.data?.findings ?? [])
          .filter((finding) => /^(projector|process|consumer|timers)_/.test(finding.code))
          .map((finding) => <Line key={finding.code + finding.subject} finding={finding} />)}
      </ul>
    </>
  );
}

function Rows({ rows, minutes }: { rows: Row[]; minutes: FollowerMinute[] }) {
  const curves = useMemo(() => {
    const named = new Map<string, FollowerMinute[]>();
    for (const minute of minutes) named.set(minute.projector, [...(named.get(minute.projector) ?? []), minute]);
    return new Map([...named].map(([name, all]) => [name, curvesOf(all)]));
  }, [minutes]);
  const small = (row: Row, which: 0 | 1) => {
    const curve = row.kind === 'consumer' ? undefined : curves.get(row.name)?.[which];
    return curve ? <Spark {...curve} /> : '–';
  };
  return (
    <Table
      caption="Followers" rows={rows} id={(row) => `${row.kind} ${row.name} ${row.version}`} mark={(row) => row.state.severity}
      columns={[
        { head: 'Name', names: true, long: true, cell: (row) => <FollowerLink of={row.name} /> },
        { head: 'Kind', cell: (row) => row.kind },
        { head: 'Version', cell: (row) => <Foreign text={row.version} /> },
        { head: 'State', cell: (row) => <Mark severity={row.state.severity}>{row.state.word}</Mark> },
        { head: 'Position', number: true, cell: (row) => count(row.position) },
        { head: 'Events behind', number: true, cell: (row) => known(row.lag_events) },
        { head: 'Behind for', number: true, cell: (row) => (row.lag_events === 0 ? '–' : row.lag_s === null ? '?' : duration(row.lag_s)) },
        { head: 'Lag, 1 h', cell: (row) => small(row, 1) },
        { head: 'Handled, 1 h', cell: (row) => small(row, 0) },
        { head: 'Parked', number: true, cell: (row) => count(row.parked) },
        { head: 'Runner', long: true, cell: (row) => orDash(row.owner) },
      ]}
    />
  );
}

export function Follower({ store, name }: { store: string; name: string }) {
  const projectors = useReading<Projector[]>(path(store, ['projections', 'status']), 2000);
  const processes = useReading<Process[]>(path(store, ['processes', 'list']), 2000);
  const consumers = useReading<Consumer[]>(path(store, ['inbox', 'status']), 2000);
  const builds = (projectors.data ?? []).filter((each) => each.projector === name);
  const process = processes.data?.find((each) => each.process === name);
  const streams = (consumers.data ?? []).filter((each) => each.consumer === name);
  const isThere = builds.length + streams.length > 0 || process !== undefined;
  const why = useReading<Finding[]>(isThere ? path(store, ['why', name]) : null, 5000);
  return (
    <>
      <Title text={name} reading={projectors} />
      {isThere && <Read reading={why}>{(chain) => (chain[0] ? <Worst finding={chain[0]} causes={chain.slice(1)} /> : null)}</Read>}
      <Read reading={projectors}>{() => (isThere || consumers.data === null ? null : <Empty>There is no follower of this name.</Empty>)}</Read>
      {builds.length > 0 && <History store={store} name={name} />}
      {builds.map((each) => <Build key={each.build} of={each} />)}
      {process && <ProcessFacts of={process} />}
      {streams.map((each) => <ConsumerFacts key={each.broker_stream} of={each} />)}
      {builds.length > 0 && <Failing store={store} name={name} />}
      {streams.length > 0 && <Letters store={store} name={name} />}
    </>
  );
}

function History({ store, name }: { store: string; name: string }) {
  const history = useReading<FollowerMinute[]>(path(store, ['projections', 'history', name]), 30_000);
  const rows = history.data ?? [];
  const curves = useMemo(() => curvesOf(rows), [history.data]);
  const times = rows.map((row) => row.at);
  return (
    <section aria-labelledby="history">
      <h2 id="history">The last hour</h2>
      <Read reading={history}>{() => <Chart title="The last hour" times={times} step_s={60} curves={curves} marks={none} complete={complete(times, rows.map((row) => row.handled), 60)} />}</Read>
    </section>
  );
}

function Build({ of }: { of: Projector }) {
  const state = projectorState(of, undefined);
  const isOurs = about()?.has_types === true && about()?.grants !== undefined && of.kind !== 'reaction' && of.state === 'living';
  return (
    <section>
      <h2>{of.kind === 'reaction' ? 'Reaction' : 'Projection'} <span class="quiet">v{of.projector_version}, build {of.build}</span></h2>
      <Facts
        facts={[
          ['State', <Mark severity={state.severity}>{state.word}</Mark>],
          ['Position', count(of.position)],
          ['Behind', of.lag_events === 0 ? 'nothing' : `${known(of.lag_events)} events${of.lag_s === null ? '' : `, ${duration(of.lag_s)}`}`],
          ['Runner', of.owner === null ? 'none' : <Foreign text={of.owner} />],
          ['Fails at', of.failing === null ? '–' : <><EventLink of={of.failing} />, {plural(of.attempts, 'try', 'tries')}</>],
          ['Error', of.error === null ? 'none' : <Foreign text={of.error} />],
          ['Parked', count(of.parked)],
          ['Skipped', count(of.skipped)],
        ]}
      />
      <Acts of={[...ofProjector(of), ...(isOurs ? [ofRebuild(of.projector)] : [])]} />
    </section>
  );
}

function ProcessFacts({ of }: { of: Process }) {
  return (
    <section>
      <h2>Timers</h2>
      <Facts
        facts={[
          ['Pending', <a href={address(['timers'], { process: of.process })}>{count(of.pending)}</a>],
          ['Due', count(of.due)],
          ['Overdue', of.overdue > 0 ? <Mark severity="warning">{count(of.overdue)}</Mark> : '0'],
          ['Next', <Ago at={of.next_due_at} />],
          ['Parked', count(of.parked)],
          ['Of a kind that no runner knows', count(of.unknown)],
          ['Fired', count(of.fired)],
          ['Failed', count(of.failed)],
        ]}
      />
    </section>
  );
}

function ConsumerFacts({ of }: { of: Consumer }) {
  return (
    <section>
      <h2>Consumer of <Foreign text={of.broker_stream} /></h2>
      <Facts
        facts={[
          ['State', words(of.state)],
          ['Position', count(of.position)],
          ['Filter', of.filter === null ? 'none' : <Foreign text={of.filter} />],
          ['Reader', of.owner === null ? 'none' : <Foreign text={of.owner} />],
          ['Fails at', of.failing === null ? '–' : `${count(of.failing)}, ${plural(of.attempts, 'try', 'tries')}`],
          ['Error', of.error === null ? 'none' : <Foreign text={of.error} />],
          ['Parked', `${count(of.parked)} of ${plural(of.parked_streams, 'stream')}`],
          ['Missed', plural(of.gaps, 'gap')],
        ]}
      />
      <Acts of={ofConsumer(of)} />
    </section>
  );
}

interface OfLoose {
  caption: string;
  rows: Record<string, unknown>[];
  none: string;
  acts?: (row: Record<string, unknown>) => Action[];
}

/** A row in the command's own form. */
function Loose({ caption, rows, none, acts }: OfLoose) {
  if (rows.length === 0) return <Empty>{none}</Empty>;
  const keys = Object.keys(rows[0]!).filter((key) => rows.some((row) => row[key] !== null) && !key.startsWith('payload'));
  const text = (value: unknown): string => (typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '–'));
  return (
    <Table
      caption={caption} rows={rows.map((row, index) => ({ row, index }))} id={({ index }) => index}
      columns={[...keys.map((key, index) => ({
        head: words(key), names: index === 0, long: true, number: rows.every((row) => typeof row[key] === 'number'),
        cell: ({ row }: { row: Record<string, unknown> }) => {
          const value = row[key];
          if (key === 'sequence' && typeof value === 'number') return <a href={toEvent(value)}>{count(value)}</a>;
          if (key.endsWith('at') && typeof value === 'string') return <Ago at={value} />;
          return typeof value === 'number' ? count(value) : <Foreign text={text(value)} />;
        },
      })), ...(acts ? [{ head: 'Do', cell: ({ row }: { row: Record<string, unknown> }) => <Acts of={acts(row)} isBrief /> }] : [])]}
    />
  );
}

function Failing({ store, name }: { store: string; name: string }) {
  const after = route.value.query.get('after');
  const events = useReading<ParkedEvent[]>(path(store, ['projections', 'list', name], { after }), 5000);
  const acts = ({ sequence, state }: Record<string, unknown>): Action[] => (state === 'parked' ? ofParkedEvent(name, Number(sequence)) : []);
  return (
    <section>
      <h2>Events that it failed at</h2>
      <Read reading={events}>{(rows) => <Loose caption="Failing and parked events" rows={rows} none="None." acts={acts} />}</Read>
      <Pager reading={events} shown={events.data?.length ?? 0} />
    </section>
  );
}

function Letters({ store, name }: { store: string; name: string }) {
  const letters = useReading<Record<string, unknown>[]>(path(store, ['inbox', 'list'], { consumer: name }), 5000);
  const acts = ({ parked, state }: Record<string, unknown>): Action[] => (state === 'parked' ? ofLetter(Number(parked)) : []);
  const gaps = useReading<Record<string, unknown>[]>(path(store, ['inbox', 'gaps'], { consumer: name }), 5000);
  return (
    <section>
      <h2>Parked messages</h2>
      <Read reading={letters}>{(rows) => <Loose caption="Parked messages" rows={rows} none="None." acts={acts} />}</Read>
      <h2>Missed messages</h2>
      <Read reading={gaps}>{(rows) => <Loose caption="Gaps" rows={rows} none="None." />}</Read>
    </section>
  );
}
