// The dialog of an action: its question, its command line, and its result.
import { signal } from '@preact/signals';
import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { needs, ofLine, type Action } from './actions';
import { about, typed } from './api';
import { Following, isOpen, type Job } from './jobs';
import { EventLink, StreamLink } from './links';
import { announce, Command, Facts, Foreign, Mark } from './parts';
import { address, route } from './route';
import { count, reason, sentence, words } from './text';
import type { Severity } from './types';

interface Shown {
  action: Action;
  following: Following;
  /** True if this page started it. */
  isMine: boolean;
}
const shown = signal<Shown | null>(null);

/** Why the action isn't possible here, or not for this user. */
function refusalOf(action: Action): string | null {
  const { can_act, acts, grants, program } = about()!;
  if (!(acts ?? can_act)) return `This console only reads: ${program} serve --allow-actions, or --operate-as URL`;
  const grant = needs(action);
  return !grants || grants[grant] ? null : `Needs the grant '${grant}'`;
}

/** The command line as it would be typed. */
export const lineOf = (job: Job): string => typed(job.command);

function open(action: Action): void {
  const following = new Following(route.value.store!);
  shown.value = { action, following, isMine: true };
  if (action.blanks === undefined) void following.start(action, {});
}

/** Shows a job that was started before, here or elsewhere. */
export function lookAt(job: Job): void {
  const following = new Following(route.value.store!);
  shown.value = { action: ofLine(job.command), following, isMine: false };
  void following.follow(job);
}

// ---- The buttons that open it

/** Why a list's buttons are disabled. */
export function Refusals({ of }: { of: Action[] }) {
  const refusals = [...new Set(of.map(refusalOf))].filter((each) => each !== null);
  return <>{refusals.map((each) => <span key={each} class="quiet">{each}</span>)}</>;
}

/** Buttons for the possible actions. In a list they are brief, because the row names the subject. */
export function Acts({ of, isBrief = false }: { of: Action[]; isBrief?: boolean }) {
  if (of.length === 0) return null;
  return (
    <span class="acts">
      {of.map((action) => {
        const refusal = refusalOf(action);
        return (
          <button
            key={action.command} type="button" class="small" aria-disabled={refusal === null ? undefined : 'true'} title={refusal ?? undefined}
            onClick={() => (refusal === null ? open(action) : announce(refusal))}
          >
            {action.verb}<span class={isBrief ? 'unseen' : ''}> <Foreign text={action.what} /></span>…
          </button>
        );
      })}
      {!isBrief && <Refusals of={of} />}
    </span>
  );
}

// ---- The dialog

export function JobDialog() {
  const now = shown.value;
  // Going to another page leaves the question.
  const place = `${route.value.store} ${route.value.page.join('/')}`;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => () => dialog.current?.close(), [place]);
  return now === null ? null : <Dialog key={now} of={now} dialog={dialog} />;
}

function Dialog({ of, dialog }: { of: Shown; dialog: RefObject<HTMLDialogElement | null> }) {
  const head = useRef<HTMLHeadingElement>(null);
  const { action, following, isMine } = of;
  const job = following.job.value;
  useLayoutEffect(() => {
    dialog.current!.showModal();
    if (action.blanks === undefined) head.current!.focus();
  }, []);
  // The element with the focus is gone.
  useEffect(() => {
    if (job !== null && !isOpen(job) && document.activeElement?.tagName !== 'H2') head.current?.focus();
  }, [job?.state]);
  const close = (): void => dialog.current!.close();
  const closed = (): void => {
    following.leave(isMine);
    shown.value = null;
    requestAnimationFrame(() => {
      if (document.activeElement === document.body) document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true });
    });
  };
  return (
    <dialog ref={dialog} class="job" aria-labelledby="job" onClose={closed}>
      <h2 id="job" ref={head} tabIndex={-1}>{action.verb} <Foreign text={action.what} /></h2>
      {job === null ? <Before of={of} close={close} /> : <Course of={of} job={job} head={head} close={close} />}
    </dialog>
  );
}

function Refusal({ of: { following } }: { of: Shown }) {
  const problem = following.problem.value;
  if (problem === null) return null;
  return <p><Mark severity="unknown">not answered:</Mark> <Foreign text={sentence(problem.message)} /></p>;
}

/** Before the server knows of it: the form for the command's values. */
function Before({ of, close }: { of: Shown; close: () => void }) {
  const { action, following } = of;
  const blanks = action.blanks ?? [];
  const begin = (event: SubmitEvent): void => {
    event.preventDefault();
    const said = new FormData(event.currentTarget as HTMLFormElement);
    void following.start(action, Object.fromEntries([...said].map(([name, value]) => [name.slice(1), String(value).trim()])));
  };
  const isWaiting = blanks.length === 0 && following.problem.value === null;
  return (
    <form onSubmit={begin}>
      {blanks.map(({ name, label, value }) => (
        // A form doesn't send a field without a name.
        <label key={name}><span>{label}</span><input name={`=${name}`} defaultValue={value} required autocomplete="off" /></label>
      ))}
      {isWaiting && <p class="quiet" role="status">Looking what it would do …</p>}
      <Refusal of={of} />
      <p class="decide">
        <button type="button" onClick={close}>Cancel</button>
        {!isWaiting && <button type="submit">Continue</button>}
      </p>
    </form>
  );
}

/** The command's own question; otherwise the title is one. */
const questionOf = (job: Job): string | null => (job.question === '' || job.question.startsWith("Run '") ? null : job.question);

interface OfCourse {
  of: Shown;
  job: Job;
  head: RefObject<HTMLHeadingElement | null>;
  close: () => void;
}

function Course({ of, job, head, close }: OfCourse) {
  const { following, isMine } = of;
  const question = questionOf(job);
  const isDecided = following.decision.value !== null;
  const asks = job.state === 'asks' && !isDecided;
  const isUnderWay = job.state === 'runs' || job.state === 'waits' || (job.state === 'asks' && isDecided);
  const isElsewhere = isMine && !isDecided && job.question !== '' && !asks;
  return (
    <>
      <div role="status" class="fresh">
        {asks && <p class="question"><Foreign text={question ?? 'Run this command?'} /></p>}
        {asks && <p class="quiet">The question lasts 15 minutes.{question !== null && ' What isn’t any more as it was found is left alone.'}</p>}
        {job.state === 'looks' && <p class="quiet">Looking what it would do …</p>}
        {job.state === 'waits' && <p>Waits until another job is done.</p>}
        {isUnderWay && <Progress of={job} />}
        {isUnderWay && <p>Under way; it goes on if this is closed, and is listed in <a href={address(['log', 'jobs'])}>Log, Jobs</a>.</p>}
        {!isOpen(job) && <Became job={job} />}
        {isElsewhere && job.state !== 'cancelled' && <p class="quiet">{job.decided_by ? <><Foreign text={job.decided_by} /> confirmed it.</> : 'Somebody else confirmed it.'}</p>}
        <Refusal of={of} />
      </div>
      <p><Command line={lineOf(job)} /></p>
      {asks ? <Decision of={of} job={job} head={head} close={close} /> : (
        <p class="decide">
          {job.stopping && <span class="quiet">Ends at the next safe point …</span>}
          {isUnderWay && job.state !== 'asks' && !job.stopping && <button type="button" onClick={() => void following.decide('cancel')}>Cancel the job</button>}
          <button type="button" onClick={close}>{job.state === 'looks' ? 'Cancel' : 'Close'}</button>
        </p>
      )}
    </>
  );
}

function Progress({ of: { progress } }: { of: Job }) {
  if (!progress) return null;
  const { stage, done, total } = progress;
  return (
    <p>
      <progress value={done} max={Math.max(total, done, 1)} aria-label={stage} /> <Foreign text={stage} />: {count(done)}{total > 0 && ` of ${count(total)}`}
    </p>
  );
}

/** "Retry 22", if the question has a count. */
function deed({ verb }: Action, job: Job): string {
  const amount = /\b(\d+) (message|timer)/.exec(job.question)?.[1];
  return amount === undefined ? verb : `${verb} ${count(Number(amount))}`;
}

function Decision({ of, job, head, close }: OfCourse) {
  const { action, following, isMine } = of;
  const [typed, setTyped] = useState('');
  const isTyped = action.isFinal === true || about()?.environment != null;
  const isReady = !isTyped || typed.trim() === following.store;
  const confirm = (event: Event): void => {
    event.preventDefault();
    if (!isReady) return;
    head.current?.focus();
    void following.decide('confirm');
  };
  return (
    <form onSubmit={confirm}>
      {isTyped && (
        <label>
          <span>Type the store’s name, <b><Foreign text={following.store} /></b></span>
          <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" spellcheck={false} />
        </label>
      )}
      <p class="decide">
        <button type="button" onClick={close}>{isMine ? 'Cancel' : 'Close'}</button>
        {!isMine && <button type="button" onClick={() => void following.decide('cancel')}>Cancel the job</button>}
        <button type="submit" class="deed" aria-disabled={isReady ? undefined : 'true'}>{deed(action, job)}</button>
      </p>
    </form>
  );
}

// ---- What became of it

const outcomes: Record<Job['state'], Severity> = { looks: 'ok', asks: 'warning', waits: 'ok', runs: 'ok', done: 'ok', failed: 'critical', cancelled: 'ok' };
export const Outcome = ({ of: { state } }: { of: Job }) => <Mark severity={outcomes[state]}>{state}</Mark>;

type Printed = Record<string, unknown>;

function Became({ job }: { job: Job }) {
  const isChanged = job.printed.some((each) => Array.isArray(each.left_alone) && each.left_alone.length > 0);
  return (
    <>
      <p class="question">
        {job.state === 'cancelled' && (job.error === '' ? 'Cancelled: nothing was done.' : <>Cancelled: <Foreign text={job.error} /></>)}
        {job.state === 'done' && (isChanged ? <Mark severity="warning">Done, but not all of it: some has changed since.</Mark> : 'Done.')}
        {job.state === 'failed' && <><Mark severity="critical">Not done:</Mark> <Foreign text={reason(job.error)} /></>}
      </p>
      {job.printed.map((each, index) => <Lines key={index} of={each} />)}
      {job.printed_all === false && <p class="quiet">More was printed than is kept here.</p>}
      {job.notes.map((note) => <p key={note}><Foreign text={note} /></p>)}
    </>
  );
}

const named = (key: string): string => words(key).replace(/^./, (letter) => letter.toUpperCase());
const most_rows = 100;
/** Fields that say nothing here. */
const left_out = ['dry_run', 'severity', 'amount'];

/** The output of a command: its numbers and words, and a line for each row of its lists. */
function Lines({ of }: { of: Printed }) {
  const isFact = ([name, value]: [string, unknown], index: number) =>
    value !== null && typeof value !== 'object' && (value !== 0 || index === 0) && !left_out.includes(name);
  const text = (value: unknown): ComponentChildren =>
    typeof value === 'number' ? count(value) : typeof value === 'boolean' ? (value ? 'yes' : 'no') : <Foreign text={String(value)} />;
  const lists = Object.entries(of).filter((each): each is [string, Printed[]] => Array.isArray(each[1]) && each[1].length > 0);
  return (
    <>
      <Facts facts={Object.entries(of).filter(isFact).map(([name, value]) => [named(name), text(value)])} />
      {lists.map(([name, rows]) => (
        <section key={name}>
          <h3>{named(name)}</h3>
          <ul class="became">
            {rows.slice(0, most_rows).map((row, index) => <li key={index}><Row of={row} /></li>)}
            {rows.length > most_rows && <li>and {count(rows.length - most_rows)} more</li>}
          </ul>
        </section>
      ))}
    </>
  );
}

function Row({ of: { stream, sequence, why, ...others } }: { of: Printed }) {
  const words_of_it = Object.values(others).filter((value) => typeof value === 'string').slice(0, 3);
  const said = why === undefined ? words_of_it : [why];
  return (
    <>
      {typeof stream === 'string' && <><StreamLink of={stream} /> </>}
      {typeof sequence === 'number' && <>at <EventLink of={sequence} />: </>}
      <Foreign text={said.map(String).join(' · ')} />
    </>
  );
}
