// What an engine implements, and a Store is a handle to.
#pragma once

#include "database/database.hpp"
#include "database/deferred_append.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/eventstore/verify.hpp>
#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/query.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace stela {

/// Tags that an event of history is to get.
struct TagsOfEvent {
  GlobalSequence sequence;
  std::int32_t kind = 0;
  StreamId stream;
  std::vector<Tag> tags;
};

/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT Store::Core : public EventStore, public database::Database {
 public:
  using database::Database::attach;
  using database::Database::detach;
  using database::Database::read;
  using EventStore::attach;
  using EventStore::detach;
  using EventStore::read;

  virtual const Uuid& id() const noexcept = 0;

  /// Makes an append ready for `carry_out`, without waiting for anybody. Throws as `append` what is
  /// wrong with the request, which must outlive it, as must the client.
  virtual std::unique_ptr<DeferredAppend> defer(const AppendRequest& request,
                                                AppendClient& client) = 0;
  /// Makes some of these appends on this thread, as many as go into one commit, and tells their
  /// clients. It takes them when it is this thread's turn, and as this store made them.
  virtual void carry_out(DeferredAppends& appends) noexcept = 0;

  /// Calls `f` with each tag that has a row, once, and its first event, until it returns false. In
  /// the order of their hashes, from the one after that of `after` on; empty: from the first.
  virtual void for_each_tag(std::string_view after,
                            FunctionRef<bool(std::string_view, GlobalSequence)> f) = 0;
  /// From now on events of these types carry what they declare.
  virtual void declare_tags(std::span<const TagNeed> needs) = 0;
  /// In one transaction. Tags that an event has are left out. How many events got any.
  virtual std::int64_t write_tags(std::span<const TagsOfEvent> events) = 0;
  /// All of history has these tags now: raises the tag epoch.
  virtual void complete_tags(std::span<const TagNeed> needs) = 0;
  /// False if the type didn't carry any. Raises the tag epoch.
  virtual bool forget_tags(std::string_view type, std::string_view category) = 0;

  Store& anchor() noexcept final { return anchor_; }

  virtual VerifyResult verify(FunctionRef<void(const Problem&)> report,
                              const VerifyOptions& options) = 0;
  /// The last event that the tables or their indexes know of, or nearly, if they can't be read.
  virtual std::int64_t last_known_sequence() = 0;

 private:
  Store anchor_{*this};
};

}  // namespace stela
