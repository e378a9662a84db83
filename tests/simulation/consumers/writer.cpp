#include "simulation/consumers/writer.hpp"

#include "envelope.hpp"

#include <stela/outbox/partitioner.hpp>

#include <algorithm>
#include <cstdio>

namespace stela::sim {
namespace {

constexpr double skipped = 0.1;
constexpr double unhandled = 0.1;

Uuid draw_id(Chance& chance) {
  Uuid::Bytes bytes{};
  chance.fill(bytes);
  bytes[6] = static_cast<std::uint8_t>(0x70 | (bytes[6] & 0x0f));
  bytes[8] = static_cast<std::uint8_t>(0x80 | (bytes[8] & 0x3f));
  return Uuid{bytes};
}

}  // namespace

Writer::Writer(Stage& stage, Chance& chance, Broker& broker, std::vector<WrittenEvent>& events,
               const Options& options)
    : stage_{stage},
      chance_{chance},
      broker_{broker},
      events_{events},
      options_{options},
      id_{draw_id(chance).to_string()} {
  contents_.versions.resize(static_cast<std::size_t>(options.streams));
  contents_.before.resize(static_cast<std::size_t>(options.streams), -1);
  contents_.generations.push_back({.partitions = options.partitions});
}

StreamId Writer::name_of(int stream) const {
  return StreamId::of("thing", std::to_string(stream));
}

std::string Writer::broker_stream(int partitions, int partition) const {
  const bool is_shared = partitions == 1 || !options_.is_fenced;
  return is_shared ? options_.prefix : options_.prefix + "_p0" + std::to_string(partition);
}

std::vector<std::string> Writer::broker_streams(int most_partitions) const {
  std::vector<std::string> all{options_.prefix};
  if (!options_.is_fenced) return all;
  for (int i = 0; most_partitions > 1 && i < most_partitions; ++i) {
    all.push_back(broker_stream(most_partitions, i));
  }
  return all;
}

int Writer::partition_of(int stream, int partitions) const {
  return (stream * 7 + options_.number) % partitions;
}

bool Writer::Generation::is_drained() const noexcept {
  return std::all_of(queues.begin(), queues.end(),
                     [](const auto& queue) { return queue.second.is_empty(); });
}

void Writer::append(int stream, int schema) {
  const auto at = static_cast<std::size_t>(stream);
  if (contents_.sequence + 2 >= most_) set_back_ = 0;
  // Not every event is published, and each takes a version.
  if (chance_.happens(skipped)) {
    ++contents_.versions[at];
    ++contents_.sequence;
  }
  const int number = static_cast<int>(events_.size());
  events_.push_back(
      {.store = options_.number,
       .stream = stream,
       .version = ++contents_.versions[at],
       .sequence = ++contents_.sequence,
       .before = std::exchange(contents_.before[at], number),
       .id = draw_id(chance_),
       .recorded_at = SimClock::start_of_wall + stage_.now() - set_back_,
       .schema = schema,
       .kind = chance_.happens(unhandled) ? EventKindOf::ignored : EventKindOf::handled});
  Generation& newest = contents_.generations.back();
  newest.queues[partition_of(stream, newest.partitions)].pending.push_back(number);
}

bool Writer::has_pending() const {
  return std::any_of(contents_.generations.begin(), contents_.generations.end(),
                     [](const Generation& each) { return !each.is_drained(); });
}

bool Writer::publish_one() {
  auto& generations = contents_.generations;
  while (generations.size() > 1 && generations.front().is_drained()) generations.pop_front();
  Generation& open = generations.front();
  std::vector<int> ready;
  for (const auto& [partition, queue] : open.queues) {
    if (!queue.is_empty()) ready.push_back(partition);
  }
  if (ready.empty()) return false;
  return send_from(open, ready[static_cast<std::size_t>(chance_.below(std::ssize(ready)))]);
}

bool Writer::send_from(Generation& generation, int partition) {
  Partition& queue = generation.queues[partition];
  if (!queue.again.empty()) {
    const ToSend again = queue.again.front();
    queue.again.pop_front();
    send(generation, partition, again);
    return true;
  }
  const int event = queue.pending.front();
  queue.pending.pop_front();
  const auto parked = contents_.parked.find(events_[static_cast<std::size_t>(event)].stream);
  if (parked != contents_.parked.end()) {
    parked->second.push_back({.event = event});
    return true;
  }
  send(generation, partition, {.event = event});
  return true;
}

void Writer::send(const Generation& generation, int partition, const ToSend& what) {
  WrittenEvent& event = events_[static_cast<std::size_t>(what.event)];
  const std::string stream = broker_stream(generation.partitions, partition);
  std::int64_t& previous = previous_[stream];
  broker_.publish(stream, write(generation, what, previous));
  if (options_.trace) {
    std::printf("%9.3f s    publish %s %llu: event %d%s\n",
                static_cast<double>(stage_.now()) / second, stream.c_str(),
                static_cast<unsigned long long>(broker_.find(stream)->last()), what.event,
                what.redelivery > 0 ? " again" : "");
  }
  previous = event.sequence;
  if (event.is_published()) return;
  event.broker_stream = stream;
  event.came_as_copy = what.redelivery > 0;
  event.stored_at = broker_.find(stream)->messages.rbegin()->second.time;
  contents_.published.push_back(what.event);
}

SentMessage Writer::write(const Generation& generation, const ToSend& what,
                          std::int64_t previous) const {
  const WrittenEvent& event = events_[static_cast<std::size_t>(what.event)];
  const bool has_handler = event.kind == EventKindOf::handled;
  const EventKind kind{.type = has_handler ? "thing.happened" : "thing.ignored",
                       .schema_version = event.schema,
                       .publishes = true};
  const StreamId name = name_of(event.stream);
  const std::int64_t before =
      event.before < 0 ? 0 : events_[static_cast<std::size_t>(event.before)].version;
  const std::string payload = "{}";
  const StoredEvent stored{.sequence = GlobalSequence{event.sequence},
                           .stream = name,
                           .version = StreamVersion{event.version},
                           .kind = kind,
                           .id = event.id,
                           .recorded_at = Timestamp{std::chrono::microseconds{event.recorded_at}},
                           .correlation = {},
                           .causation_id = {},
                           .metadata = {},
                           .published_before = StreamVersion{before},
                           .payload = payload};
  std::string message_id = event.id.to_string();
  if (what.redelivery > 0) message_id += ".r" + std::to_string(what.redelivery);
  OutgoingMessage outgoing{.event = stored,
                           .store_id = id_,
                           .message_id = message_id,
                           .redelivery = what.redelivery,
                           .previous = GlobalSequence{previous}};
  if (options_.is_fenced) {
    outgoing.predecessor.emplace();
    if (generation.number > 1) {
      outgoing.generation = {.number = generation.number,
                             .first = GlobalSequence{generation.first}};
    }
  }
  natsMsg* raw = nullptr;
  nats::check(natsMsg_Create(&raw, "things", nullptr, nullptr, 0), "making a message");
  const nats::MessageHandle message{raw};
  nats::EnvelopeWriter writer{
      {.content_type = nats::content_type_of(Codec::json), .partitioner = &by_stream()}};
  writer.write(raw, outgoing);
  SentMessage sent{.subject = "things." + kind.type, .payload = payload, .event = what.event};
  nats::MessageHeaders{raw}.for_each([&](std::string_view header, std::string_view value) {
    sent.headers.emplace_back(header, value);
  });
  return sent;
}

// --- the relay's operator

void Writer::park(int stream) {
  contents_.parked.try_emplace(stream);
}

bool Writer::is_parked(int stream) const {
  return contents_.parked.contains(stream);
}

/// Under the generation that is being drained, before what waits of the stream.
void Writer::retry(int stream) {
  auto parked = contents_.parked.extract(stream);
  if (parked.empty()) return;
  for (const ToSend& each : parked.mapped()) send_again(each.event);
}

void Writer::send_again(int event) {
  Generation& open = contents_.generations.front();
  const int stream = events_[static_cast<std::size_t>(event)].stream;
  open.queues[partition_of(stream, open.partitions)].again.push_back(
      {.event = event, .redelivery = ++contents_.redelivery});
}

void Writer::discard_first(int stream) {
  const auto parked = contents_.parked.find(stream);
  if (parked == contents_.parked.end()) return;
  if (!parked->second.empty()) {
    events_[static_cast<std::size_t>(parked->second.front().event)].is_given_up = true;
    parked->second.pop_front();
  }
  retry(stream);
}

void Writer::republish(std::size_t first, std::size_t count) {
  const std::vector<int> published = contents_.published;
  std::vector<int> chosen;
  for (std::size_t i = first; i < std::min(first + count, published.size()); ++i) {
    chosen.push_back(published[i]);
  }
  std::sort(chosen.begin(), chosen.end());
  for (const int event : chosen) send_again(event);
}

void Writer::repeat(std::size_t count) {
  const Generation& open = contents_.generations.front();
  const std::vector<int>& all = contents_.published;
  for (std::size_t i = all.size() - std::min(count, all.size()); i < all.size(); ++i) {
    const WrittenEvent& event = events_[static_cast<std::size_t>(all[i])];
    const int partition = partition_of(event.stream, open.partitions);
    if (broker_stream(open.partitions, partition) != event.broker_stream) continue;
    send(open, partition, {.event = all[i]});
  }
}

void Writer::republish_lost(const std::set<int>& lost) {
  std::vector<int> chosen;
  for (const int event : contents_.published) {
    if (lost.contains(event)) chosen.push_back(event);
  }
  std::sort(chosen.begin(), chosen.end());
  for (const int event : chosen) send_again(event);
}

void Writer::resize(int partitions) {
  const Generation& newest = contents_.generations.back();
  if (newest.partitions == partitions) return;
  contents_.generations.push_back(
      {.number = newest.number + 1, .first = contents_.sequence + 1, .partitions = partitions});
}

void Writer::back_up() {
  backup_ = std::make_unique<Contents>(contents_);
}

void Writer::restore() {
  // What wasn't published, no consumer can know.
  for (const int event : contents_.published) {
    most_ = std::max(most_, events_[static_cast<std::size_t>(event)].sequence);
  }
  contents_ = *backup_;
  if (chance_.happens(0.5)) set_back_ += 60 * 60 * second;
  backup_.reset();
}

}  // namespace stela::sim
