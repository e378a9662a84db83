// Findings in the diagnosis's own words. Nothing is judged here.
import type { ComponentChildren } from 'preact';
import { ofFinding } from './actions';
import { typed } from './api';
import { Acts } from './job';
import { Command, Foreign, Mark } from './parts';
import { isHere, toEvent, toFollower, toPartition } from './route';
import { Clock, Since } from './time';
import { sentence, visible } from './text';
import type { Finding, Severity } from './types';

/** A sentence of the diagnosis, with links to the events and partitions that it names, and times in the chosen form. */
export function Sentence({ text: said }: { text: string }) {
  // Masked text has a star for each letter.
  const text = sentence(said).replace(/\*{4,}/g, '(masked)');
  const pieces: ComponentChildren[] = [];
  const names = /\b((?:[Ee]vent|[Mm]essage) )(\d+)\b|\b([Pp]artition )?(p\d{2,4})\b(?![\w.])|\b(\d{4}-\d\d-\d\dT[\d:.]+Z)/g;
  let end = 0;
  for (const match of text.matchAll(names)) {
    pieces.push(visible(text.slice(end, match.index)));
    end = match.index + match[0].length;
    const [all, kind, sequence, , partition, at] = match;
    if (at !== undefined) {
      pieces.push(<Clock key={match.index} at={at} />);
      continue;
    }
    const href = sequence === undefined ? toPartition(partition!) : toEvent(Number(sequence));
    const name = sequence === undefined ? all : kind! + sequence;
    pieces.push(isHere(href) ? name : <a key={match.index} href={href}>{name}</a>);
  }
  pieces.push(visible(text.slice(end)));
  return <bdi>{pieces}</bdi>;
}

/** The remedy: its text, with commands ready to be copied. */
export function Remedy({ text }: { text: string }) {
  const pieces = text.split(new RegExp(`'(${typed('').replace(/[^\w ]/g, '\\$&')}[^']*)'`));
  return (
    <p class="remedy">
      <span aria-hidden="true">→ </span><span class="unseen">What to do: </span>
      {pieces.map((piece, index) => (index % 2 === 0 ? visible(piece) : <Step key={index} line={piece} />))}
    </p>
  );
}

/** Words in capitals are for the reader to fill in, so such a line can't be copied. */
function Step({ line }: { line: string }) {
  return /\b[A-Z]{3,}\b/.test(line) ? <code>{visible(line)}</code> : <Command line={line} />;
}

/** The page of the finding's subject, unless it is this page. */
function subjectPage({ code, subject }: Finding): string | null {
  let page: string | null = null;
  if (subject !== null && code.startsWith('partition_')) page = toPartition(subject);
  if (subject !== null && /^(projector|process|consumer)_/.test(code)) page = toFollower(subject);
  return page === null || isHere(page) ? null : page;
}

export function Chain({ causes }: { causes: Finding[] }) {
  return (
    <ul class="chain">
      {causes.map((cause, index) => (
        <li key={index}>
          <span aria-hidden="true">← </span><span class="unseen">caused by: </span>
          <Mark severity={cause.severity} /> <Sentence text={cause.sentence} /> <Since at={cause.since_at} />
        </li>
      ))}
    </ul>
  );
}

/** The worst finding: a sentence, its causes, and the remedy of the last cause. */
export function Worst({ finding, causes, children }: { finding: Finding; causes: Finding[]; children?: ComponentChildren }) {
  const remedy = [...causes].reverse().find((cause) => cause.remedy !== null)?.remedy ?? finding.remedy;
  const page = subjectPage(finding);
  return (
    <div class="worst">
      <p class="sentence">
        <Mark severity={finding.severity} /> <Sentence text={finding.sentence} />{' '}
        <span class="since"><Since at={finding.since_at} /></span>
        {page && <> <a class="since" href={page}>Open <Foreign text={finding.subject!} /></a></>}
      </p>
      {causes.length > 0 && <Chain causes={causes} />}
      {remedy !== null && <Remedy text={remedy} />}
      {children}
    </div>
  );
}

export function Line({ finding }: { finding: Finding }) {
  const page = subjectPage(finding);
  return (
    <li>
      <Mark severity={finding.severity} /> <Sentence text={finding.sentence} />{' '}
      <span class="since">
        {finding.known === null ? <Since at={finding.since_at} /> : <Foreign text={finding.known} />}
        {page && <> · <a href={page}><Foreign text={finding.subject!} /></a></>}
      </span>{' '}
      <Acts of={ofFinding(finding)} isBrief />
    </li>
  );
}

const order: Record<Severity, number> = { critical: 3, unknown: 2, warning: 1, known: 0, ok: 0 };

/** The worst finding of each subject. */
export function bySubject(findings: Finding[]): Map<string, Finding> {
  const worst = new Map<string, Finding>();
  for (const finding of findings) {
    const before = finding.subject === null ? undefined : worst.get(finding.subject);
    if (finding.subject !== null && (!before || order[before.severity] < order[finding.severity])) {
      worst.set(finding.subject, finding);
    }
  }
  return worst;
}
