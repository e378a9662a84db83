// Readings that follow the store: repeated while somebody looks, and never blank in between.
import { signal } from '@preact/signals';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { about, ask, Problem } from './api';
import { noteServerTime } from './time';
import type { AsOf, Asked, More } from './types';

const idle_after_ms = 120_000;
const idle_pace_ms = 5_000;
const spinner_after_ms = 200;
/** The pause after a failed request, so that a starting server isn't overrun. */
const retry_ms = 2_000;

let lastInput = Date.now();
for (const kind of ['pointermove', 'pointerdown', 'keydown', 'wheel', 'focus']) {
  addEventListener(kind, () => (lastInput = Date.now()), { passive: true, capture: true });
}

export interface Reading<T> {
  data: T | null;
  asOf: AsOf | null;
  asked: Asked[];
  more: More | null;
  /** Why the last request failed. The data shown is then older. */
  problem: Problem | null;
  /** When the last answer came, by this machine's clock. Null before the first. */
  answeredAt: number | null;
  failingSince: number | null;
  /** The answer takes so long that the page says so. */
  isSlow: boolean;
  reload(): void;
}

interface State<T> extends Omit<Reading<T>, 'reload'> {
  path: string | null;
}

function nothing<T>(path: string | null): State<T> {
  return {
    path, data: null, asOf: null, asked: [], more: null, problem: null, answeredAt: null, failingSince: null, isSlow: false,
  };
}

function pace(every: number): number {
  return Date.now() - lastInput > idle_after_ms ? Math.max(every, idle_pace_ms) : every;
}

/** The worst state of the connection in any reading of the page, for the header. */
export const silentSince = signal<number | null>(null);

/** The number of actions that this page has carried out. Each one triggers new readings. */
export const acted = signal(0);

/** Reads `path`, and again each `every` milliseconds if that isn't 0. Null reads nothing. */
export function useReading<T>(path: string | null, every = 0): Reading<T> {
  const [state, setState] = useState<State<T>>(() => nothing(path));
  const again = useRef<() => void>(() => undefined);
  const opened = about();

  // At once, not after the next frame.
  useLayoutEffect(() => {
    if (path === null || opened === null) return undefined;
    const control = new AbortController();
    let timer = 0;
    let tag: string | null = null;
    let isUnderWay = false;
    let isAnswered = false;
    // Data of another path is shown for a moment only.
    const slow = window.setTimeout(() => {
      setState((now) => (now.path === path && (now.data !== null || now.problem !== null) ? now : { ...nothing<T>(path), isSlow: true }));
    }, spinner_after_ms);

    const wait = (ms: number): void => {
      window.clearTimeout(timer);
      timer = window.setTimeout(read, ms);
    };
    const read = async (): Promise<void> => {
      if (isUnderWay || document.hidden) return;
      isUnderWay = true;
      try {
        const answer = await ask<T>(path, { tag, signal: control.signal });
        tag = answer.tag;
        isAnswered = true;
        const at = Date.now();
        silentSince.value = null;
        if (answer.envelope) noteServerTime(answer.envelope.as_of.at, answer.envelope.as_of.export !== undefined);
        const envelope = answer.envelope;
        setState((now) =>
          envelope === null
            ? { ...now, answeredAt: at, problem: null, failingSince: null }
            : {
                path, data: envelope.data, asOf: envelope.as_of, asked: envelope.asked ?? [], more: envelope.more ?? null,
                problem: null, answeredAt: at, failingSince: null, isSlow: false,
              },
        );
        if (every > 0) wait(pace(every));
      } catch (error) {
        if (control.signal.aborted) return;
        const problem = error instanceof Problem ? error : new Problem(0, String(error));
        if (problem.status === 0) silentSince.value ??= Date.now();
        setState((now) => ({
          ...(now.path === path ? now : nothing<T>(path)),
          isSlow: false, problem, failingSince: now.failingSince ?? Date.now(),
        }));
        if (every > 0 || problem.status === 0 || problem.status === 503) wait(Math.max(every, retry_ms));
      } finally {
        isUnderWay = false;
        window.clearTimeout(slow);
      }
    };
    const look = (): void => {
      // A list stays as it is.
      if (!document.hidden && (every > 0 || !isAnswered)) wait(0);
    };
    again.current = () => {
      tag = null;
      wait(0);
    };
    document.addEventListener('visibilitychange', look);
    const before = acted.peek();
    const forget = acted.subscribe((times) => (times > before ? again.current() : undefined));
    void read();
    return () => {
      control.abort();
      forget();
      window.clearTimeout(timer);
      window.clearTimeout(slow);
      document.removeEventListener('visibilitychange', look);
    };
  }, [path, every, opened]);

  return { ...state, reload: () => again.current() };
}
