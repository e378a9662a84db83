// What an application tells the tool that it embeds: its own types.
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

/// Threads: `main` builds it; after that any number of threads may read it.
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

  /// Lets `streams state` show aggregates of this type.
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

  /// Null if no aggregate of this category was added.
  const StateReader* state_of(std::string_view category) const noexcept {
    const auto at = states_.find(category);
    return at == states_.end() ? nullptr : &at->second;
  }

 private:
  std::map<std::string, StateReader, std::less<>> states_;
};

}  // namespace stela::tool
