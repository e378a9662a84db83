// The search page: goes where the text leads, or tells what can be found.
import { useEffect } from 'preact/hooks';
import { reading as path } from '../api';
import { useReading } from '../live';
import { Empty, Foreign, Read, Title } from '../parts';
import { address, go, route, toCorrelation } from '../route';
import type { Found } from '../types';

function placeOf(found: Found): string | null {
  switch (found.kind) {
    case 'event':
      return address(['e', found.name]);
    case 'stream':
      return address(['stream', found.name]);
    case 'partition':
      return address(['outbox', found.name]);
    case 'worker':
      return address(['outbox', 'workers']);
    case 'projector':
    case 'process':
    case 'consumer':
      return address(['followers', found.name]);
    case 'correlation':
      return toCorrelation(found.name);
    case 'tag':
      return address(['events'], { tag: found.name });
    case 'type':
      return address(['events'], { type: found.name });
    default:
      return null;
  }
}

export function Find({ store }: { store: string }) {
  const { query } = route.value;
  const text = query.get('q') ?? query.get('event') ?? query.get('message') ?? '';
  const found = useReading<Found>(text === '' ? null : path(store, ['find'], { q: text }));
  const place = found.data === null ? null : placeOf(found.data);
  useEffect(() => {
    if (place !== null) go(place, { replace: true });
  }, [place]);
  return (
    <>
      <Title text="Find" />
      {text === '' && <Help />}
      {text !== '' && (
        <Read reading={found}>
          {() => (place === null ? <><p>Nothing is called «<Foreign text={text} />».</p><Help /></> : null)}
        </Read>
      )}
    </>
  );
}

function Help() {
  return (
    <>
      <Empty>An index serves these:</Empty>
      <ul class="plain">
        <li>an event’s sequence, <code>4711</code>, or its id</li>
        <li>a stream, <code>order-7</code>; a tag, <code>course-c1</code></li>
        <li>a partition, <code>p03</code>, or a worker’s name</li>
        <li>a projector, reaction, process or consumer</li>
        <li>a correlation id</li>
      </ul>
      <p>Filters by type, time or error: <a href={address(['events'])}>Events</a>, <a href={address(['outbox', 'messages'])}>Messages</a>.</p>
    </>
  );
}
