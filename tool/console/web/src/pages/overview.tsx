// The problem, its causes and remedies; below it, the current activity.
import { useMemo, useRef, useState } from 'preact/hooks';
import { ofFinding, ofPartition, ofPoison, type Action } from '../actions';
import { reading as path } from '../api';
import { Chart, complete, perSecond, type Curve } from '../chart';
import { bySubject, Line, Worst } from '../finding';
import { Acts } from '../job';
import { useReading, type Reading } from '../live';
import { Empty, Foreign, isStale, Mark, NotAnswered, Read, Title } from '../parts';
import { address, toFollower, toPartition } from '../route';
import { partitionState } from '../states';
import { Ago, clock, duration, roughly } from '../time';
import { count, known, plural, rate } from '../text';
import {
  answered, refusal, type Asked, type Change, type Check, type Consumer, type Finding, type Minute, type Outbox, type OverviewData,
  type Part, type Partition, type Process, type Projector, type Worker,
} from '../types';

export function Overview({ store }: { store: string }) {
  const overview = useReading<OverviewData>(path(store, ['overview']), 1000);
  return (
    <>
      <Title text="Overview" reading={overview} />
      <Read reading={overview}>{(data) => <Shown store={store} data={data} reading={overview} />}</Read>
    </>
  );
}

function Shown({ store, data, reading }: { store: string; data: OverviewData; reading: Reading<OverviewData> }) {
  const check = answered(data.check);
  const findings = useMemo(() => bySubject(check?.findings ?? []), [check]);
  const asked = reading.asked.length > 0 ? reading.asked : (check?.asked ?? []);
  return (
    <>
      <Diagnosis check={data.check} why={data.why} partitions={answered(data.outbox)?.partitions ?? []} />
      <Numbers data={data} reading={reading} asked={asked} />
      <History store={store} hour={data.history} changes={data.changes} />
      <div class="columns">
        <Workers workers={data.workers} />
        <Partitions outbox={data.outbox} findings={findings} />
        <FollowersInBrief data={data} findings={findings} />
      </div>
    </>
  );
}

// ---- The diagnosis

const shown_at_once = 3;

/** The remedies of the last cause, and the action that acknowledges the whole finding. */
function remedies(worst: Finding, causes: Finding[], partitions: Partition[]): Action[] {
  const root = causes.at(-1) ?? worst;
  const partition = partitions.find((each) => root.code.startsWith('partition_') && each.partition === root.subject);
  return [...ofPoison([root]), ...(partition ? ofPartition(partition) : []), ...ofFinding(worst)];
}

function Diagnosis({ check, why, partitions }: { check: Part<Check>; why: Part<Finding[]>; partitions: Partition[] }) {
  const answer = answered(check);
  if (answer === null) return <section aria-label="Diagnosis" class="diagnosis"><NotAnswered why={refusal(check)} /></section>;
  const wrong = answer.findings.filter((finding) => finding.severity !== 'known' && finding.severity !== 'ok');
  const acknowledged = answer.findings.filter((finding) => finding.severity === 'known');
  const chain = answered(why) ?? [];
  const worst = chain.length > 0 && chain[0]!.code !== 'well' ? chain[0]! : wrong[0];
  const causes = worst === chain[0] ? chain.slice(1) : [];
  const isShown = (finding: Finding): boolean =>
    [worst, ...causes].some((other) => other?.code === finding.code && other.subject === finding.subject);
  const others = wrong.filter((finding) => !isShown(finding));
  const silent = answer.asked.filter((source) => !source.answered);
  return (
    <section aria-label="Diagnosis" class="diagnosis">
      {worst === undefined ? (
        <p class="sentence">{silent.length === 0 ? 'Nothing is wrong.' : 'Nothing is wrong with what answered.'}</p>
      ) : (
        <Worst finding={worst} causes={causes}><Acts of={remedies(worst, causes, partitions)} /></Worst>
      )}
      {answer.message !== null && <p><Foreign text={answer.message} /></p>}
      {(others.length > 0 || acknowledged.length > 0) && <Others others={others} acknowledged={acknowledged} />}
    </section>
  );
}

function Others({ others, acknowledged }: { others: Finding[]; acknowledged: Finding[] }) {
  const folded = others.slice(shown_at_once);
  return (
    <ul class="others">
      {others.slice(0, shown_at_once).map((finding) => <Line key={finding.code + finding.subject} finding={finding} />)}
      {folded.length > 0 && (
        <li>
          <details>
            <summary><Mark severity={folded[0]!.severity}>{count(folded.length)} more</Mark></summary>
            <ul>{folded.map((finding) => <Line key={finding.code + finding.subject} finding={finding} />)}</ul>
          </details>
        </li>
      )}
      {acknowledged.length > 0 && (
        <li>
          <details>
            <summary><Mark severity="known">{count(acknowledged.length)} known</Mark></summary>
            <ul>{acknowledged.map((finding) => <Line key={finding.code + finding.subject} finding={finding} />)}</ul>
          </details>
        </li>
      )}
    </ul>
  );
}

// ---- Four numbers, and who answered

interface Rate {
  rate: number;
  over_s: number;
}
interface Sample {
  at: number;
  value: number;
}
const window_ms = 15_000;

/** The growth of a total over the answers of the last 15 seconds. Null until it is known. */
function useRate(total: number | null, at: number | null): Rate | null {
  const samples = useRef<Sample[]>([]);
  if (total !== null && at !== null && samples.current.at(-1)?.at !== at) {
    samples.current = [...samples.current.filter((sample) => at - sample.at <= window_ms), { at, value: total }];
  }
  const first = samples.current[0];
  const last = samples.current.at(-1);
  if (!first || !last || last.at - first.at < 2000) return null;
  const over_s = (last.at - first.at) / 1000;
  return { rate: Math.max(0, (last.value - first.value) / over_s), over_s };
}

/** The pace while the page is open; until that is known, the recorded one of the last minute. */
function pace(seen: Rate | null, minutes: Minute[], of: (row: Minute) => number | null): { value: string; when: string } {
  if (seen !== null) return { value: rate(seen.rate), when: `over ${Math.round(seen.over_s)} s` };
  const last = minutes.findLast((row) => of(row) !== null);
  if (last === undefined) return { value: '–', when: 'looking …' };
  return { value: rate(of(last)! / 60), when: `at ${clock(last.at, { seconds: false })}` };
}

function Number_({ name, value, under, href }: { name: string; value: string; under: string; href: string }) {
  return (
    <div class="figure">
      <dt><a href={href}>{name}</a></dt>
      <dd><span class="big">{value}</span> <span class="under">{under}</span></dd>
    </div>
  );
}

/** The text for an unknown value: the store has no such part, or it didn't answer. */
const absent = (part: Part<object>): string => (part === null ? 'none' : '?');

function Numbers({ data, reading, asked }: { data: OverviewData; reading: Reading<OverviewData>; asked: Asked[] }) {
  const outbox = answered(data.outbox);
  const head = reading.asOf?.sequence ?? answered(data.check)?.as_of.sequence ?? null;
  const appended = useRate(head, isStale(reading) ? null : reading.answeredAt);
  const published = useRate(outbox?.published ?? null, isStale(reading) ? null : reading.answeredAt);
  const minutes = answered(data.history) ?? [];
  const events = pace(appended, minutes, (row) => row.appended);
  const messages = pace(published, minutes, (row) => row.published);
  const projectors = answered(data.projections);
  const living = (projectors ?? []).filter((each) => each.state !== 'retired');
  const behind = living.filter((each) => (each.lag_events ?? 0) > 0).length;
  const answeredCount = asked.filter((source) => source.answered).length;
  return (
    <section aria-label="Figures">
      <dl class="figures">
        <Number_ name="events /s" value={events.value} under={`${events.when} · ${known(head)} in all`} href={address(['events'])} />
        <Number_
          name="published /s" href={address(['outbox'])}
          value={outbox === null ? absent(data.outbox) : messages.value}
          under={outbox === null ? '' : `${messages.when} · ${count(outbox.published)} in all`}
        />
        <Number_
          name="oldest pending" href={address(['outbox', 'messages'])}
          value={outbox === null ? absent(data.outbox) : outbox.lag_s === null ? 'none' : duration(outbox.lag_s)}
          under={outbox === null ? '' : `${known(outbox.pending, outbox.pending_is_lower_bound)} pending · ${count(outbox.parked)} parked`}
        />
        <Number_
          name="followers behind" href={address(['followers'])} under=""
          value={projectors === null ? absent(data.projections) : living.length === 0 ? 'none' : `${behind} of ${living.length}`}
        />
        <div class="figure asked">
          <dt>asked</dt>
          <dd>
            <span class="under">{answeredCount} of {asked.length} answered</span>
            {asked.filter((source) => !source.answered).map((source) => (
              <span class="under" key={source.what}>
                <Mark severity="unknown"><Foreign text={source.what} /></Mark>{source.error && <>: <Foreign text={source.error} /></>}
              </span>
            ))}
          </dd>
        </div>
      </dl>
    </section>
  );
}

// ---- Curves

function curvesOf(rows: Minute[], step_s: number): Curve[] {
  return [
    { name: 'appended', values: perSecond(rows.map((row) => row.appended), step_s), show: (value) => `${rate(value)} /s` },
    { name: 'published', values: perSecond(rows.map((row) => row.published), step_s), show: (value) => `${rate(value)} /s` },
    { name: 'lag', values: rows.map((row) => row.lag_s), show: duration },
  ];
}

function marksOf(changes: Part<Change[]>): { at: string; text: string }[] {
  return (answered(changes) ?? []).map((change) => ({
    at: change.at,
    text: [change.subject, change.what, change.who && `by ${change.who}`].filter(Boolean).join(' '),
  }));
}

function History({ store, hour, changes }: { store: string; hour: Part<Minute[]>; changes: Part<Change[]> }) {
  const [isDay, setIsDay] = useState(false);
  const day = useReading<Minute[]>(isDay ? path(store, ['outbox', 'history'], { since: '24h', by: '15m' }) : null, 60_000);
  // A minute's rows don't change until the next minute, so they aren't drawn again.
  const figures = answered(hour)?.map((row) => [row.at, row.appended, row.published, row.lag_s]);
  const key = JSON.stringify([figures, answered(changes)?.[0]?.change]);
  const [rows, marks] = useMemo(() => [answered(hour), marksOf(changes)], [key]);
  const choice = (name: string, value: boolean) => (
    <button type="button" aria-pressed={isDay === value} onClick={() => setIsDay(value)}>{name}</button>
  );
  return (
    <section aria-labelledby="history">
      <div class="head">
        <h2 id="history">History</h2>
        <span class="choice" role="group" aria-label="Span">{choice('last hour', false)}{choice('24 h', true)}</span>
      </div>
      {refusal(changes) !== null && <NotAnswered why={`which changes there were: ${refusal(changes)}`} />}
      {isDay ? (
        <Read reading={day}>{(found) => <Span title="The last 24 hours" rows={found} step_s={900} marks={marks} />}</Read>
      ) : rows === null ? (
        <NotAnswered why={refusal(hour)} />
      ) : (
        <Span title="The last hour" rows={rows} step_s={60} marks={marks} />
      )}
    </section>
  );
}

function Span({ title, rows, step_s, marks }: { title: string; rows: Minute[]; step_s: number; marks: { at: string; text: string }[] }) {
  const curves = useMemo(() => curvesOf(rows, step_s), [rows, step_s]);
  const times = rows.map((row) => row.at);
  return <Chart title={title} times={times} step_s={step_s} curves={curves} marks={marks} complete={complete(times, rows.map((row) => row.appended), step_s)} />;
}

// ---- Workers, partitions, followers

function Workers({ workers }: { workers: Part<Worker[]> }) {
  const rows = answered(workers);
  return (
    <section aria-labelledby="workers">
      <h2 id="workers"><a href={address(['outbox', 'workers'])}>Workers</a>{rows && <span class="amount"> {rows.length}</span>}</h2>
      {rows === null ? <NotAnswered why={refusal(workers)} /> : rows.length === 0 ? <Empty>No worker has run.</Empty> : (
        <ul class="brief">
          {rows.map((worker) => (
            <li key={worker.worker}>
              <span class="grow">
                {worker.is_alive ? worker.is_cut_off ? <Mark severity="warning">cut off</Mark> : null : <Mark severity="unknown">silent</Mark>}{' '}
                <Foreign text={worker.worker} /> <span class="quiet"><Foreign text={worker.host} /></span>
              </span>
              <span>{plural(worker.partitions, 'partition')}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const most_cells = 64;

function Partitions({ outbox, findings }: { outbox: Part<Outbox>; findings: Map<string, Finding> }) {
  const status = answered(outbox);
  if (status === null) {
    return <section aria-labelledby="partitions"><h2 id="partitions">Partitions</h2><NotAnswered why={refusal(outbox)} /></section>;
  }
  const states = status.partitions.map((partition) => ({ partition, state: partitionState(partition, findings.get(partition.partition)) }));
  const all = states.filter(({ partition, state }) => partition.is_current || partition.pending > 0 || partition.parked > 0 || state.severity !== 'ok');
  // The selection doesn't change with each new message.
  const cells = all.length <= most_cells ? all : all.filter(({ state }) => state.severity !== 'ok').slice(0, most_cells);
  return (
    <section aria-labelledby="partitions">
      <h2 id="partitions"><a href={address(['outbox'])}>Partitions</a><span class="amount"> {all.length}</span></h2>
      <ul class="cells">
        {cells.map(({ partition, state }) => (
          <li key={partition.partition} class={state.severity}>
            <a href={toPartition(partition.partition)} title={`${state.word}, ${partition.pending} pending`}>
              <Mark severity={state.severity}>{partition.partition}</Mark>
              <span class="number">{known(partition.pending, partition.pending_is_lower_bound)}</span>
              <span class="unseen"> pending, {state.word}</span>
            </a>
          </li>
        ))}
      </ul>
      <p class="quiet">
        {cells.length === 0 ? 'nothing is to be said of them' : 'numbers are of pending messages'}
        {cells.length > 0 && cells.length < all.length && ` · nothing is to be said of ${count(all.length - cells.length)} more`}
      </p>
    </section>
  );
}

function Lag({ lag_events, lag_s }: { lag_events: number | null; lag_s: number | null }) {
  return lag_events === 0 ? <>0</> : <>{known(lag_events)} · {lag_s === null ? '?' : roughly(lag_s)}</>;
}

function Named({ name, finding }: { name: string; finding: Finding | undefined }) {
  return <a class="grow" href={toFollower(name)}><Mark severity={finding?.severity ?? 'ok'}><Foreign text={name} /></Mark></a>;
}

function FollowersInBrief({ data, findings }: { data: OverviewData; findings: Map<string, Finding> }) {
  const projectors = answered(data.projections);
  const consumers = answered(data.inbox) ?? [];
  const living = (projectors ?? []).filter((each: Projector) => each.state !== 'retired');
  return (
    <section aria-labelledby="followers">
      <h2 id="followers"><a href={address(['followers'])}>Followers</a><span class="amount"> {projectors && living.length + consumers.length}</span></h2>
      {projectors === null && <NotAnswered why={refusal(data.projections)} />}
      <ul class="brief">
        {living.map((each: Projector) => (
          <li key={`${each.projector} ${each.build}`}>
            <Named name={each.projector} finding={findings.get(each.projector)} />
            <span class="number"><Lag {...each} /></span>
          </li>
        ))}
        {consumers.map((each: Consumer) => (
          <li key={`${each.consumer} ${each.broker_stream}`}>
            <Named name={each.consumer} finding={findings.get(each.consumer)} />
            <span>at {count(each.position)}</span>
          </li>
        ))}
      </ul>
      {living.length > 0 && <p class="quiet">numbers are of events behind, and for how long</p>}
      {projectors !== null && living.length + consumers.length === 0 && <Empty>No projector, reaction or consumer is registered.</Empty>}
      <TimersInBrief timers={data.timers} />
    </section>
  );
}

function TimersInBrief({ timers }: { timers: Part<Process[]> }) {
  const processes = answered(timers);
  if (processes === null) return <NotAnswered why={refusal(timers)} />;
  const sum = (of: (process: Process) => number): number => processes.reduce((total, process) => total + of(process), 0);
  const next = processes.map((process) => process.next_due_at).filter((at) => at !== null).sort()[0];
  const overdue = sum((process) => process.overdue);
  return (
    <p class="timers">
      <a href={address(['timers'])}>Timers</a>: {count(sum((process) => process.pending))} pending
      {next !== undefined && <>, next due <Ago at={next!} /></>}
      {overdue > 0 && <>, <Mark severity="warning">{count(overdue)} overdue</Mark></>}
    </p>
  );
}
