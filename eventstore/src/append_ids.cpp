#include <stela/eventstore/operations.hpp>

#include "database/database.hpp"
#include "operations_sql/catalogue.hpp"

#include <string>
#include <vector>

namespace stela {
namespace {

using database::Connection;
namespace sql = operations::sql;

constexpr std::int64_t batch_rows = 1000;

class Purge {
 public:
  Purge(Store& store, Timestamp before) noexcept : store_{store}, before_{before} {}

  /// Reads the next ids; false at the end.
  bool look();
  /// Removes the old ids among them, except ids that were used again meanwhile. Returns their
  /// number.
  std::int64_t remove();

  std::int64_t looked() const noexcept { return looked_; }
  std::int64_t old() const noexcept { return static_cast<std::int64_t>(old_.size()); }

 private:
  struct Id {
    std::string text;
    Timestamp used_at;
  };

  Store& store_;
  Timestamp before_;
  std::string last_;
  std::int64_t looked_ = 0;
  std::vector<Id> old_;
};

bool Purge::look() {
  std::int64_t rows = 0;
  store_.database().read([&](Connection& connection) {
    old_.clear();
    rows = 0;
    const std::string after = last_;
    auto ids = connection.rows(sql::list_append_ids{.after = after, .limit = batch_rows});
    while (ids.step()) {
      ++rows;
      last_ = ids.append_id();
      if (ids.used_at() < before_) old_.push_back({last_, ids.used_at()});
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
      removed += connection.run(sql::delete_append_id{.append_id = id.text, .used_at = id.used_at});
    }
  };
  store_.database().write_along(remove_all, database::Sync::none);
  return removed;
}

}  // namespace

PurgedAppendIds StoreOperations::purge_append_ids(Timestamp before,
                                                  const PurgeAppendIdsOptions& options) {
  PurgedAppendIds result;
  Purge purge{store_, before};
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

}  // namespace stela
