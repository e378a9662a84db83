#include <stela/eventstore/append_ids.hpp>

#include "sqlite/core.hpp"
#include "sqlite_sql.hpp"

#include <optional>
#include <string>
#include <vector>

namespace stela::sqlite {
namespace {

constexpr std::int64_t batch_rows = 1000;

class Purge {
 public:
  Purge(Store& store, Timestamp before) noexcept
      : store_{store}, before_{before.time_since_epoch().count()} {}

  /// Looks at the next ids; false at the end.
  bool look();
  /// Removes those of them that are old. How many went: not those that were used again meanwhile.
  std::int64_t remove();

  std::int64_t looked() const noexcept { return looked_; }
  std::int64_t old() const noexcept { return static_cast<std::int64_t>(old_.size()); }

 private:
  struct Id {
    std::string text;
    std::optional<std::int64_t> used_at;
  };

  Store& store_;
  std::int64_t before_;
  std::string last_;
  std::int64_t looked_ = 0;
  std::vector<Id> old_;
};

bool Purge::look() {
  std::int64_t rows = 0;
  store_.core().reading().read([&](Connection& connection) {
    old_.clear();
    rows = 0;
    const std::string after = last_;
    Query query = connection.query(sql::list_append_ids);
    query.bind(1, after).bind(2, batch_rows);
    while (query.step()) {
      ++rows;
      last_ = query.text(0);
      // An append without events from before times were noted has none, and is kept.
      if (query.is_null(2) || query.integer(2) >= before_) continue;
      old_.push_back({last_, query.is_null(1) ? std::nullopt : std::optional{query.integer(1)}});
    }
  });
  looked_ += rows;
  return rows == batch_rows;
}

std::int64_t Purge::remove() {
  if (old_.empty()) return 0;
  std::int64_t removed = 0;
  const auto remove_all = [&](Connection& connection) {
    for (const Id& id : old_) {
      Query query = connection.query(sql::delete_append_id);
      query.bind(1, id.text);
      if (id.used_at) {
        query.bind(2, *id.used_at);
      } else {
        query.bind(2, nullptr);
      }
      query.run();
      removed += sqlite3_changes(connection.handle());
    }
  };
  store_.core().writer().run_along(remove_all, Sync::none);
  return removed;
}

}  // namespace

PurgedAppendIds purge_append_ids(Store& store, Timestamp before,
                                 const PurgeAppendIdsOptions& options) {
  PurgedAppendIds result;
  Purge purge{store, before};
  bool more = true;
  while (more) {
    if (options.stop.stop_requested()) {
      result.finished = false;
      break;
    }
    more = purge.look();
    result.ids += options.dry_run ? purge.old() : purge.remove();
    if (options.progress) options.progress({"append ids", purge.looked(), 0});
  }
  return result;
}

}  // namespace stela::sqlite
