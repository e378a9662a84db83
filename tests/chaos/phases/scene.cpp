#include "chaos/phases/scene.hpp"

#include "chaos/appender.hpp"
#include "chaos/roles.hpp"

#include <stela/nats/detail/stream_reader.hpp>

#include <algorithm>

namespace stela::chaos {

using namespace std::chrono_literals;

namespace {

/// What came in a longer run takes longer to look through.
std::chrono::seconds limit_of(const Settings& settings) {
  const std::chrono::seconds longer{settings.seconds / 10};
  return longer + (settings.defaults || settings.line_bytes > 0 ? 120s : 30s);
}

/// Of the ledger of what is appended here; no process of a run has it.
constexpr int scene_number = 90;

bool are_equal(const test::RawMessage& one, const test::RawMessage& other) {
  return one.sequence == other.sequence && one.subject == other.subject &&
         one.payload == other.payload && one.headers == other.headers;
}

}  // namespace

Scene::Scene(World& world, const Settings& settings)
    : world_{world}, settings_{settings}, relays_{settings_, world.proxy.url()} {}

void Scene::append(int times) {
  Appender{settings_, {.number = scene_number}}.append(times);
}

OutboxStatus Scene::status() const {
  auto shop = open_shop(settings_);
  return OutboxOperations{shop}.status();
}

std::vector<PartitionStatus> Scene::stopped() const {
  std::vector<PartitionStatus> found = status().partitions;
  std::erase_if(found, [](const PartitionStatus& each) { return !each.stopped; });
  return found;
}

void Scene::adopt(const std::vector<PartitionStatus>& partitions) {
  auto shop = open_shop(settings_);
  OutboxOperations operations{shop};
  for (const PartitionStatus& each : partitions) operations.adopt(each.id);
}

Compared Scene::compare(Mode mode) {
  auto shop = open_shop(settings_);
  nats::StreamReader broker{reader_options(settings_, world_.proxy.url())};
  Compared compared;
  expect("no comparison ends, or no worker looks at what was adopted", [&] {
    try {
      compared = OutboxOperations{shop}.compare(broker, GlobalSequence{1}, mode);
      return true;
    } catch (const UsageError&) {
      return false;
    } catch (const BrokerFailed&) {
      return false;  // it doesn't answer in time, and the operator runs it again
    }
  });
  return compared;
}

void Scene::require_all(const std::string& whose) {
  const std::map<std::string, int> copies = copies_in(contents());
  int missing = 0;
  int repeated = 0;
  for (const std::string& id : ids()) {
    const auto found = copies.find(id);
    if (found == copies.end()) ++missing;
    if (found != copies.end() && found->second > 1) ++repeated;
  }
  if (missing > 0) {
    world_.problems.push_back(whose + " has " + std::to_string(missing) +
                              " events that aren't at the broker");
  }
  // The other fences look at the last message alone, or at none.
  if (repeated > 0 && settings_.fence == Fence::stream) {
    world_.problems.push_back(whose + " has " + std::to_string(repeated) +
                              " events at the broker twice");
  }
}

std::int64_t Scene::waiting() const {
  const OutboxStatus now = status();
  return now.pending + now.in_flight + now.retrying + now.redeliveries;
}

bool Scene::ends(const std::string& problem, const std::function<std::int64_t()>& left) {
  const bool ended = world_.falls_to_zero(left, limit_of(settings_),
                                          [this] { relays_.look_after(world_.problems); });
  if (!ended) world_.problems.push_back(problem);
  return ended;
}

bool Scene::expect(const std::string& problem, const std::function<bool()>& condition) {
  return ends(problem, [&] { return condition() ? 0 : 1; });
}

bool Scene::drains(const std::string& problem) {
  if (ends(problem, [this] { return waiting(); })) return true;
  for (const PartitionStatus& each : stopped()) {
    world_.problems.back() += "; " + each.id.label() + " " +
                              std::string{to_string(each.stopped.value())} + ": " +
                              each.stopped_detail;
  }
  return false;
}

std::set<std::string> Scene::ids() const {
  auto shop = open_shop(settings_);
  std::set<std::string> ids;
  for (const StoredEvent& event : shop.read_all()) {
    if (event.publishes()) ids.insert(event.id.to_string());
  }
  return ids;
}

Contents Scene::contents() const {
  Contents contents;
  test::JetStream broker{world_.broker.url()};
  for (const std::string& stream : broker.streams()) {
    for (test::RawMessage& message : broker.drain(stream)) {
      const bool shares = settings_.fence == Fence::subject;
      std::string place = shares ? message.subject.substr(message.subject.rfind('.') + 1) : stream;
      contents[place].push_back(std::move(message));
    }
  }
  return contents;
}

std::string Scene::place_of(PartitionId partition) const {
  if (settings_.fence == Fence::subject) return partition.label();
  return partition.number == 0 ? "SHOP" : "SHOP_" + partition.label();
}

bool goes_on_from(const Contents& before, const Contents& then) {
  return std::all_of(before.begin(), before.end(), [&](const auto& place) {
    const auto now = then.find(place.first);
    if (now == then.end() || now->second.size() < place.second.size()) return false;
    return std::equal(place.second.begin(), place.second.end(), now->second.begin(), are_equal);
  });
}

std::map<std::string, int> copies_in(const Contents& contents) {
  std::map<std::string, int> copies;
  for (const auto& [place, messages] : contents) {
    for (const test::RawMessage& message : messages) ++copies[message.headers.at("ce-id")];
  }
  return copies;
}

}  // namespace stela::chaos
