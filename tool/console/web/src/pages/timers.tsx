// Timers by due time, and the payload of one.
import { ofAllTimers, ofParkedTimers, ofTimer } from '../actions';
import { reading as path, typed } from '../api';
import { Acts } from '../job';
import { CauseLink, CorrelationLink, FollowerLink, orDash } from '../links';
import { useReading } from '../live';
import { Command, Empty, Facts, Filters, Foreign, Mark, Pager, Read, Table, Title } from '../parts';
import { Content } from '../payload';
import { address, route } from '../route';
import { Ago, exact, roughly } from '../time';
import { count, inShell, words } from '../text';
import type { Process, Severity, Timer } from '../types';

const overdue_after_s = 60;

function severity(timer: Timer): Severity {
  return timer.state === 'parked' || (timer.late_s ?? 0) > overdue_after_s ? 'warning' : 'ok';
}

export function Timers({ store }: { store: string }) {
  const { query } = route.value;
  const which = query.get('which') ?? '';
  const options = Object.fromEntries(['process', 'kind', 'key', 'since', 'until', 'after'].map((name) => [name, query.get(name)]));
  const timers = useReading<Timer[]>(path(store, ['timers', 'list'], { ...options, ...(which === '' ? {} : { [which]: 1 }), limit: 100 }));
  const processes = useReading<Process[]>(path(store, ['processes', 'list']), 2000);
  return (
    <>
      <Title text="Timers" reading={timers} />
      <Read reading={processes}>{(rows) => <Summary rows={rows} />}</Read>
      {(processes.data?.length ?? 0) > 0 && <Acts of={ofAllTimers} />}
      <Filters
        fields={[
          { name: 'which', label: 'Which', options: [['', 'all'], ['due', 'due'], ['overdue', 'overdue'], ['parked', 'parked']] },
          { name: 'process', label: 'Process' },
          { name: 'kind', label: 'Kind' },
          { name: 'key', label: 'Instance', hint: 'booking-7' },
          { name: 'since', label: 'Due since' },
          { name: 'until', label: 'Due until' },
        ]}
      />
      <Read reading={timers}>{(rows) => <Rows rows={rows} />}</Read>
      <Pager reading={timers} shown={timers.data?.length ?? 0} />
    </>
  );
}

function Summary({ rows }: { rows: Process[] }) {
  if (rows.length === 0) return <Empty>No process has set timers in this database.</Empty>;
  return (
    <Table
      caption="Processes" rows={rows} id={(row) => row.process}
      columns={[
        { head: 'Process', names: true, long: true, cell: (row) => <FollowerLink of={row.process} /> },
        { head: 'Pending', number: true, cell: (row) => count(row.pending) },
        { head: 'Next', cell: (row) => <Ago at={row.next_due_at} /> },
        { head: 'Due', number: true, cell: (row) => count(row.due) },
        { head: 'Overdue', number: true, cell: (row) => (row.overdue > 0 ? <Mark severity="warning">{count(row.overdue)}</Mark> : '0') },
        { head: 'Parked', number: true, cell: (row) => (
          row.parked > 0 ? <><Acts of={ofParkedTimers(row.process)} isBrief /> <Mark severity="warning">{count(row.parked)}</Mark></> : '0'
        ) },
        { head: 'Fired', number: true, cell: (row) => count(row.fired) },
        { head: 'Failed', number: true, cell: (row) => count(row.failed) },
      ]}
    />
  );
}

function Rows({ rows }: { rows: Timer[] }) {
  if (rows.length === 0) return <Empty>No timer is like that.</Empty>;
  return (
    <Table
      caption="Timers" rows={rows} id={(row) => [row.process, row.key, row.kind].join(' ')}
      columns={[
        { head: 'Instance', names: true, long: true, cell: (row) => <a href={address(['timers', row.process, row.key, row.kind])}><Foreign text={row.key} /></a> },
        { head: 'Kind', long: true, cell: (row) => <Foreign text={row.kind} /> },
        { head: 'Process', long: true, cell: (row) => <Foreign text={row.process} /> },
        { head: 'Due', cell: (row) => <Ago at={row.due_at} /> },
        { head: 'State', cell: (row) => (
          <Mark severity={severity(row)}>{words(row.state)}{(row.late_s ?? 0) > 0 && `, ${roughly(row.late_s!)} late`}</Mark>
        ) },
        { head: 'Recurs', cell: (row) => orDash(row.recurrence) },
        { head: 'Tries', number: true, cell: (row) => count(row.attempts) },
      ]}
    />
  );
}

export function TimerPage({ store, of }: { store: string; of: [string, string, string] }) {
  const timer = useReading<Timer>(path(store, ['timers', 'show', ...of]), 5000);
  return (
    <>
      <Title text={`${of[2]} of ${of[1]}`} reading={timer} />
      <Read reading={timer}>
        {(found) => (
          <>
            <Facts
              facts={[
                ['State', <Mark severity={severity(found)}>{words(found.state)}</Mark>],
                ['Due', <>{exact(found.due_at)} (<Ago at={found.due_at} />)</>],
                ['Recurs', found.recurrence === null ? 'no' : <Foreign text={found.recurrence} />],
                ['Process', <FollowerLink of={found.process} />],
                ['Instance', <a href={address(['timers'], { key: found.key })}><Foreign text={found.key} /></a>],
                ['Kind', <><Foreign text={found.kind} /> v{found.schema_version}</>],
                ['Set', <>{exact(found.set_at)} (<Ago at={found.set_at} />)</>],
                ['By', orDash(found.actor)],
                ['Correlation', <CorrelationLink id={found.correlation_id} />],
                ['Caused by', <CauseLink id={found.causation_id} />],
                ['Tries', count(found.attempts)],
                ['Error', found.error === null ? 'none' : <Foreign text={found.error} />],
              ]}
            />
            <Acts of={ofTimer(of)} />
            <h2>What it carries</h2>
            <Content of={found} label="What it carries" />
          </>
        )}
      </Read>
      <p class="commands"><Command line={typed(`timers show ${of.map(inShell).join(' ')}`)} /></p>
    </>
  );
}
