// Doesn't compile if the page reads fields that the commands don't print. The error names them.
import type * as printed from './printed';
import type * as page from './types';

/** Treats states as texts, and lists as lists. */
type Wide<T> = unknown extends T ? unknown
  : T extends string ? string : T extends number ? number : T extends boolean ? boolean
  : T extends readonly unknown[] ? unknown[] : T extends object ? object : T;

type Wrong<Page, Printed> = {
  [Field in keyof Page]-?: Field extends keyof Printed ? (Printed[Field] extends Wide<Page[Field]> ? never : Field) : Field;
}[keyof Page];

interface Compared {
  Action: Wrong<page.Action, printed.Action>;
  Change: Wrong<page.Change, printed.Change>;
  Check: Wrong<page.Check, printed.Check>;
  Counts: Wrong<page.Counts, printed.Counts>;
  EventType: Wrong<page.EventType, printed.EventType>;
  Finding: Wrong<page.Finding, printed.Finding>;
  Following: Wrong<page.Following, printed.Following>;
  FollowerMinute: Wrong<page.FollowerMinute, printed.FollowerMinute>;
  Generation: Wrong<page.Generation, printed.Generation>;
  Group: Wrong<page.Group, printed.Group>;
  Known: Wrong<page.Known, printed.Known>;
  Message: Wrong<page.Message, printed.Message>;
  Minute: Wrong<page.Minute, printed.Minute>;
  Outbox: Wrong<page.Outbox, printed.Outbox>;
  Partition: Wrong<page.Partition, printed.Partition>;
  Process: Wrong<page.Process, printed.Process>;
  Projector: Wrong<page.Projector, printed.Projector>;
  Setting: Wrong<page.Setting, printed.Setting>;
  StoredEvent: Wrong<page.StoredEvent, printed.StoredEvent>;
  Timer: Wrong<page.Timer, printed.Timer>;
  Topology: Wrong<page.Topology, printed.Topology>;
  Twig: Wrong<page.Twig, printed.Twig>;
  Worker: Wrong<page.Worker, printed.Worker>;
}

type Unfit = { [Name in keyof Compared]: `${Name}.${Compared[Name]}` }[keyof Compared];
export const fits: Record<Unfit, never> = {};
