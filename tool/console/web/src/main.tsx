// The console's page: opens a session, and shows the page of the address.
import './preferences';
import { effect } from '@preact/signals';
import { render, type ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { about, begin, open, reading, session } from './api';
import { Empty, Title } from './parts';
import { Correlation } from './pages/correlation';
import { EventPage } from './pages/event';
import { Events } from './pages/events';
import { Find } from './pages/find';
import { Follower, Followers } from './pages/followers';
import { Log } from './pages/log';
import { Outbox } from './pages/outbox';
import { Overview } from './pages/overview';
import { firstRow, ofStream, Stream } from './pages/stream';
import { Topology } from './pages/topology';
import { TimerPage, Timers } from './pages/timers';
import { follow, go, route } from './route';
import { NoSession, Shell } from './shell';

/** Uses the key of a link once, and removes it from the address. */
function useKeyOfLink(): void {
  effect(() => {
    const { key } = route.value;
    if (key === null) return;
    history.replaceState(null, '', location.pathname + location.search);
    route.value = { ...route.peek(), key: null };
    void open({ key });
  });
}

function Page({ store }: { store: string }): ComponentChildren {
  const [page = '', first, ...rest] = route.value.page;
  switch (page) {
    case '':
      return <Overview store={store} />;
    case 'outbox':
      return <Outbox store={store} tab={first ?? ''} />;
    case 'e':
      return <EventPage store={store} event={first ?? ''} />;
    case 'c':
      return <Correlation key={first} store={store} id={first ?? ''} />;
    case 'stream':
      return <Stream key={first} store={store} stream={first ?? ''} />;
    case 'events':
      return <Events store={store} />;
    case 'followers':
      return first === undefined ? <Followers store={store} /> : <Follower store={store} name={first} />;
    case 'topology':
      return <Topology store={store} />;
    case 'timers':
      return rest.length === 2 ? <TimerPage store={store} of={[first!, rest[0]!, rest[1]!]} /> : <Timers store={store} />;
    case 'log':
      return <Log store={store} tab={first ?? ''} />;
    case 'find':
      return <Find store={store} />;
    default:
      return <NoPage />;
  }
}

function NoPage() {
  return (
    <>
      <Title text="No such page" />
      <Empty>This address names no page. The entries above name those that there are.</Empty>
    </>
  );
}

/** `/` is the first store's overview; `/find?…` searches the first store. */
function Elsewhere({ stores }: { stores: string[] }) {
  const { page } = route.value;
  const isStart = page.length === 0 || page[0] === 'find';
  useEffect(() => {
    if (isStart && stores.length > 0) {
      go(`s/${encodeURIComponent(stores[0]!)}/${page.map(encodeURIComponent).join('/')}${location.search}`, { replace: true });
    }
  }, [isStart]);
  return isStart ? null : <NoPage />;
}

function Console() {
  const { store } = route.value;
  const known = about();
  let shown: ComponentChildren;
  if (session.value.state !== 'open' || known === null) shown = <NoSession />;
  else if (store === null) shown = <Elsewhere stores={known.stores} />;
  else if (!known.stores.includes(store)) shown = <NoPage />;
  else shown = <Page key={store} store={store} />;
  return <Shell>{shown}</Shell>;
}

/** Starts reading the most common pages while the session is checked. */
function beginReading(): void {
  const { store, page, query } = route.value;
  if (store === null) return;
  if (page.length === 0) begin(reading(store, ['overview']));
  else if (page[0] === 'stream' && page.length === 2) begin(ofStream(store, page[1]!, firstRow(query)));
}

function start(): void {
  follow();
  if (route.value.key === null) {
    beginReading();
    void open(null);
  }
  useKeyOfLink();
  render(<Console />, document.body);
}

if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', start);
else start();
