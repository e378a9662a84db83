// Operators' actions, other changes, acknowledged findings, and the settings.
import type { VNode } from 'preact';
import { ofFinding, ofStore } from '../actions';
import { about, reading as path } from '../api';
import { Acts, lineOf, lookAt, Outcome } from '../job';
import type { Job } from '../jobs';
import { orDash } from '../links';
import { useReading } from '../live';
import { Clock, Empty, Foreign, Mark, Pager, Read, Table, Tabs, Title } from '../parts';
import { route } from '../route';
import { Ago } from '../time';
import { count, reason, words } from '../text';
import type { Action, Change, Known, Setting } from '../types';

export function Log({ store, tab }: { store: string; tab: string }) {
  const tabs = (
    <Tabs
      of="Log"
      tabs={[
        [['log'], 'Actions'],
        [['log', 'jobs'], 'Jobs'],
        [['log', 'changes'], 'Changes'],
        [['log', 'known'], 'Known findings'],
        [['log', 'settings'], 'Settings'],
      ]}
    />
  );
  if (tab === 'changes') return <Changes store={store} tabs={tabs} />;
  if (tab === 'jobs') return <Jobs store={store} tabs={tabs} />;
  if (tab === 'known') return <KnownFindings store={store} tabs={tabs} />;
  if (tab === 'settings') return <Settings store={store} tabs={tabs} />;
  return <Actions store={store} tabs={tabs} />;
}

interface Of {
  store: string;
  tabs: VNode;
}

function Actions({ store, tabs }: Of) {
  const actions = useReading<Action[]>(path(store, ['log'], { limit: 100 }), 5000);
  return (
    <>
      <Title text="Log" reading={actions} />
      {tabs}
      <Read reading={actions}>
        {(rows) =>
          rows.length === 0 ? <Empty>No operator has acted yet.</Empty> : (
            <Table
              caption="Actions of operators" rows={rows} id={(row) => row.id}
              columns={[
                { head: 'When', cell: (row) => <Clock at={row.at} /> },
                { head: 'Who', cell: (row) => orDash(row.who) },
                { head: 'What', names: true, cell: (row) => words(row.what) },
                { head: 'Part', cell: (row) => row.part },
                { head: 'Detail', wraps: true, cell: (row) => orDash(row.detail) },
              ]}
            />
          )
        }
      </Read>
    </>
  );
}

function Changes({ store, tabs }: Of) {
  const before = route.value.query.get('before');
  const changes = useReading<Change[]>(path(store, ['changes'], { limit: 100, before }), before === null ? 5000 : 0);
  return (
    <>
      <Title text="Log" reading={changes} />
      {tabs}
      <Read reading={changes}>
        {(rows) =>
          rows.length === 0 ? <Empty>Nothing has stopped, gone on or been taken over.</Empty> : (
            <Table
              caption="Changes of state" rows={rows} id={(row) => row.change}
              columns={[
                { head: 'When', cell: (row) => <Clock at={row.at} /> },
                { head: 'What', names: true, cell: (row) => <>{row.subject !== null && <Foreign text={row.subject} />} {words(row.what)}</> },
                { head: 'Part', cell: (row) => row.part },
                { head: 'Who', cell: (row) => orDash(row.who) },
                { head: 'Detail', wraps: true, cell: (row) => orDash(row.detail) },
              ]}
            />
          )
        }
      </Read>
      <Pager reading={changes} shown={changes.data?.length ?? 0} />
    </>
  );
}

/** Jobs started here since the console started. */
function Jobs({ store, tabs }: Of) {
  const jobs = useReading<{ data: Job[] }>(path(store, ['jobs']), 2000);
  return (
    <>
      <Title text="Log" reading={jobs} />
      {tabs}
      {about()?.grants && <Acts of={ofStore} />}
      <Read reading={jobs}>
        {({ data: rows }) =>
          rows.length === 0 ? <Empty>Nothing was begun here since the console started. The actions of all are in Actions.</Empty> : (
            <Table
              caption="Jobs" rows={[...rows].reverse()} id={(row) => row.job}
              columns={[
                { head: 'Job', number: true, cell: (row) => count(row.job) },
                { head: 'Command', names: true, wraps: true, cell: (row) => <Foreign text={lineOf(row)} class="code" /> },
                { head: 'State', cell: (row) => <Outcome of={row} /> },
                { head: 'Who', cell: (row) => orDash(row.decided_by ?? row.asked_by) },
                { head: 'Question', wraps: true, cell: (row) => <Foreign text={row.question.startsWith("Run '") ? '' : row.question} /> },
                { head: 'Said', wraps: true, cell: (row) => <Foreign text={[reason(row.error), ...row.notes].filter(Boolean).join(' ')} /> },
                { head: 'Do', cell: (row) => <button type="button" class="small" onClick={() => lookAt(row)}>Show<span class="unseen"> job {row.job}</span></button> },
              ]}
            />
          )
        }
      </Read>
    </>
  );
}

function KnownFindings({ store, tabs }: Of) {
  const known = useReading<Known[]>(path(store, ['findings', 'known']), 5000);
  return (
    <>
      <Title text="Log" reading={known} />
      {tabs}
      <Read reading={known}>
        {(rows) =>
          rows.length === 0 ? <Empty>No finding is acknowledged.</Empty> : (
            <Table
              caption="Known findings" rows={rows} id={(row) => `${row.code} ${row.subject}`}
              columns={[
                { head: 'Finding', names: true, cell: (row) => <Mark severity="known">{words(row.code)}</Mark> },
                { head: 'Subject', long: true, cell: (row) => orDash(row.subject) },
                { head: 'Was', cell: (row) => `${row.severity}, ${count(row.amount)}` },
                { head: 'Who', cell: (row) => <Foreign text={row.who} /> },
                { head: 'Until', cell: (row) => <Ago at={row.until_at} /> },
                { head: 'Why', wraps: true, cell: (row) => <Foreign text={row.why} /> },
                { head: 'Do', cell: (row) => <Acts of={ofFinding({ ...row, severity: 'known' })} isBrief /> },
              ]}
            />
          )
        }
      </Read>
    </>
  );
}

function Settings({ store, tabs }: Of) {
  const settings = useReading<Setting[]>(path(store, ['config', 'show']));
  return (
    <>
      <Title text="Log" reading={settings} />
      {tabs}
      <Read reading={settings}>
        {(rows) => (
          <Table
            caption="Settings, and where each value comes from" rows={rows} id={(row) => row.setting}
            columns={[
              { head: 'Setting', names: true, cell: (row) => <span class="code">{row.setting}</span> },
              { head: 'Value', wraps: true, cell: (row) => (row.value === null ? '–' : <Foreign text={String(row.value)} class="code" />) },
              { head: 'From', cell: (row) => <Foreign text={row.from} /> },
            ]}
          />
        )}
      </Read>
    </>
  );
}
