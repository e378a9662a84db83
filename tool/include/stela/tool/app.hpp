// The types that an application adds to the tool it embeds.
#pragma once

#include <stela/eventstore/sqlite.hpp>
#include <stela/eventstore/tags.hpp>
#include <stela/framework/repository.hpp>
#include <stela/outbox/partitioner.hpp>
#include <stela/projections/projections.hpp>
#include <stela/tool/export.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stela::tool {

/// Threads: `main` builds it. After that any number of threads may read it.
class App {
 public:
  /// The state of a stream's aggregate as JSON, with its version.
  struct State {
    StreamVersion version;
    std::string json;
  };
  using StateReader = std::function<State(EventLog&, const StreamId&, const Moment&)>;

  /// The program's name, as shown in help.
  std::string name = "stela";
  /// The program's own version. Empty: only Stela's.
  std::string version = {};
  /// The default database.
  std::string database = {};
  /// Partitioners of the application that its outbox may use.
  std::vector<const Partitioner*> partitioners = {};

  /// Registers projectors and reactions. Inline ones take part in appends that the tool makes.
  std::function<void(Projections&)> projections = {};

  /// Throws what decoding the event throws.
  using EventReader = std::function<void(Codec, const StoredEvent&)>;

  /// Lets `streams state` show aggregates of this type, and lets `events append` refuse events that
  /// they couldn't read.
  template <class A>
  App& aggregate() {
    states_[std::string{A::category}] = [](EventLog& log, const StreamId& stream,
                                           const Moment& moment) {
      const A loaded = Repository<A>{log}.load(Id<A>::of(stream), moment);
      State state{loaded.version(), {}};
      using Plain = typename A::StateType;
      if constexpr (codec::Serializable<Plain>) {
        codec::encode(Codec::json, loaded.state(), state.json);
      } else {
        throw UsageError{"the state of '" + std::string{A::category} +
                         "' has no serialize(), so it can't be shown"};
      }
      return state;
    };
    std::vector<EventType>& types = event_types_[std::string{A::category}];
    types.clear();
    A::EventsType::for_each(
        [&]<class E>(std::type_identity<E>) { types.push_back(E::event_type); });
    readers_[std::string{A::category}] = [](Codec codec, const StoredEvent& event) {
      EventDecoder<typename A::EventsType>{codec}.decode(event, [](const auto&) {});
    };
    return *this;
  }

  /// Lets `tags add` tag past events with the tags that the events of this set declare.
  template <class Events>
  App& event_tags() {
    Events::for_each([&]<class E>(std::type_identity<E>) {
      if constexpr (stela::detail::Tagged<E>) {
        tag_adders_[std::string{E::event_type.name}] =
            [](Store& store, const AddTagsOptions& options) { return add_tags<E>(store, options); };
      }
    });
    return *this;
  }
  using TagAdder = std::function<AddedTags(Store&, const AddTagsOptions&)>;
  /// By the name of their event type.
  const std::map<std::string, TagAdder, std::less<>>& tag_adders() const noexcept {
    return tag_adders_;
  }

  /// The events that aggregates may record, by their category.
  const std::map<std::string, std::vector<EventType>, std::less<>>& event_types() const noexcept {
    return event_types_;
  }

  bool has_aggregates() const noexcept { return !states_.empty(); }
  /// Null if no aggregate of this category was registered.
  const StateReader* state_of(std::string_view category) const noexcept {
    const auto at = states_.find(category);
    return at == states_.end() ? nullptr : &at->second;
  }
  const EventReader* event_reader_of(std::string_view category) const noexcept {
    const auto at = readers_.find(category);
    return at == readers_.end() ? nullptr : &at->second;
  }

 private:
  std::map<std::string, StateReader, std::less<>> states_;
  std::map<std::string, EventReader, std::less<>> readers_;
  std::map<std::string, TagAdder, std::less<>> tag_adders_;
  std::map<std::string, std::vector<EventType>, std::less<>> event_types_;
};

}  // namespace stela::tool
