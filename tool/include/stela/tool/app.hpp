// What an application tells the tool that it embeds: the types that only it knows.
#pragma once

#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/repository.hpp>
#include <stela/outbox/partitioner.hpp>
#include <stela/projections/projections.hpp>
#include <stela/tool/export.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::tool {

/// Threads: built once, by `main`; then any number may read.
class App {
 public:
  /// The state of a stream's aggregate as JSON, with its version.
  struct State {
    StreamVersion version;
    std::string json;
  };
  using StateReader = std::function<State(EventLog&, const StreamId&, const Moment&)>;

  /// The program's name, as help calls it.
  std::string name = "stela";
  /// The program's own version; empty for Stela's alone.
  std::string version = {};
  /// The database, unless something else is asked for.
  std::string database = {};
  /// Partitioners of the application's own, by which its outbox may be kept in order.
  std::vector<const Partitioner*> partitioners = {};

  /// Registers projectors and reactions; inline ones take part in what the tool appends.
  std::function<void(Projections&)> projections = {};

  /// `streams state` can show aggregates of this type.
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
    return *this;
  }

  /// Null if no aggregate of this category was made known.
  const StateReader* state_of(std::string_view category) const noexcept {
    const auto at = states_.find(category);
    return at == states_.end() ? nullptr : &at->second;
  }

 private:
  std::map<std::string, StateReader, std::less<>> states_;
};

}  // namespace stela::tool
