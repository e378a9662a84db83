// A job of the server, followed from its question to its result.
import { signal } from '@preact/signals';
import type { Action } from './actions';
import { ask, post, Problem, reading } from './api';
import { acted } from './live';

export interface Job {
  job: number;
  /** The command line without the program's name. */
  command: string;
  state: 'looks' | 'asks' | 'waits' | 'runs' | 'done' | 'failed' | 'cancelled';
  question: string;
  error: string;
  asked_by?: string;
  decided_by?: string | null;
  /** Cancelled while running; it ends at a safe point. */
  stopping?: boolean;
  progress?: { stage: string; done: number; total: number } | null;
  /** False: it printed more than is kept. */
  printed_all?: boolean;
  printed: Record<string, unknown>[];
  notes: string[];
}

export const isOpen = ({ state }: Job): boolean => ['looks', 'asks', 'waits', 'runs'].includes(state);
const isDecidable = ({ state }: Job): boolean => state === 'looks' || state === 'asks';

const at_first_ms = 200;
const first_ms = 5_000;
const later_ms = 500;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export class Following {
  readonly job = signal<Job | null>(null);
  /** Why its state is unknown now. */
  readonly problem = signal<Problem | null>(null);
  /** The decision made on this page. */
  readonly decision = signal<'confirm' | 'cancel' | null>(null);
  private isLeft = false;
  /** It can't be cancelled before it asks. */
  private cancelsLater = false;

  constructor(readonly store: string) {}

  async start(action: Action, said: Record<string, string>): Promise<void> {
    const { command } = action;
    const last = said[''];
    const operands = last === undefined ? action.operands : [...action.operands, last];
    const options = { ...action.options };
    for (const [name, value] of Object.entries(said)) if (name !== '' && value !== '') options[name] = value;
    try {
      this.problem.value = null;
      await this.follow(await post<Job>(reading(this.store, ['jobs']), { command, operands, options }));
    } catch (error) {
      this.fail(error);
    }
  }

  /** Follows it to its end, even if nobody watches any more; but not another user's question. */
  async follow(first: Job): Promise<void> {
    const began = Date.now();
    this.job.value = first;
    for (let job = first; isOpen(job); job = this.job.value!) {
      if (this.isLeft && !this.cancelsLater && isDecidable(job) && this.decision.value === null) return;
      await sleep(Date.now() - began < first_ms || job.state === 'runs' ? at_first_ms : later_ms);
      await this.look();
      if (this.cancelsLater && this.job.value.state === 'asks') await this.decide('cancel');
    }
    if (this.job.value.state !== 'cancelled') ++acted.value;
  }

  private async look(): Promise<void> {
    if (document.hidden) return;
    try {
      this.job.value = (await ask<Job>(reading(this.store, ['jobs', String(this.job.value!.job)]))).envelope!.data;
      this.problem.value = null;
    } catch (error) {
      this.fail(error);
      if (this.problem.value?.status !== 404) return;
      // The server was restarted meanwhile. The log tells whether the job was done.
      this.job.value = { ...this.job.value!, state: 'failed', error: this.problem.value.message };
    }
  }

  async decide(decision: 'confirm' | 'cancel'): Promise<void> {
    this.decision.value = decision;
    this.cancelsLater = false;
    try {
      await post(reading(this.store, ['jobs', String(this.job.value!.job), decision]), {});
    } catch (error) {
      // Decided elsewhere: the next answer has the result.
      const isDecided = error instanceof Problem && error.status === 409;
      if (isDecided) this.decision.value = null;
      else this.fail(error);
    }
  }

  /** Called when nobody watches any more. Cancels a question of this page. */
  leave(isMine: boolean): void {
    this.isLeft = true;
    if (!isMine || this.job.value === null || !isDecidable(this.job.value) || this.decision.value !== null) return;
    if (this.job.value.state === 'asks') void this.decide('cancel');
    else this.cancelsLater = true;
  }

  private fail(error: unknown): void {
    this.problem.value = error instanceof Problem ? error : new Problem(0, String(error));
  }
}
