// The interface that an engine implements, and that a Store is a handle to.
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

/// Tags to add to an existing event.
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

  /// Prepares an append for `carry_out`, without waiting. Throws for an invalid request, as
  /// `append` does. The request and the client must outlive it.
  virtual std::unique_ptr<DeferredAppend> defer(const AppendRequest& request,
                                                AppendClient& client) = 0;
  /// Makes as many of these appends on this thread as fit one commit, and informs their clients. It
  /// takes them when it is this thread's turn. This store must have prepared them.
  virtual void carry_out(DeferredAppends& appends) noexcept = 0;

  /// Calls `f` once with each tag that has a row, and its first event, until `f` returns false.
  /// Tags come in the order of their hashes, starting after that of `after`; empty: from the first.
  virtual void for_each_tag(std::string_view after,
                            FunctionRef<bool(std::string_view, GlobalSequence)> f) = 0;
  /// From now on events of these types carry their declared tags.
  virtual void declare_tags(std::span<const TagNeed> needs) = 0;
  /// In one transaction. Skips tags that an event has already. Returns how many events got any.
  virtual std::int64_t write_tags(std::span<const TagsOfEvent> events) = 0;
  /// Records that all existing events have these tags: raises the tag epoch.
  virtual void complete_tags(std::span<const TagNeed> needs) = 0;
  /// False if the type carried none. Raises the tag epoch.
  virtual bool forget_tags(std::string_view type, std::string_view category) = 0;

  Store& anchor() noexcept final { return anchor_; }

  virtual VerifyResult verify(FunctionRef<void(const Problem&)> report,
                              const VerifyOptions& options) = 0;
  /// The last event known to the tables or their indexes; approximate if they can't be read.
  virtual std::int64_t last_known_sequence() = 0;

 private:
  Store anchor_{*this};
};

}  // namespace stela
