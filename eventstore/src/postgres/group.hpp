// A group of appends as arrays for the server's functions, and the answer.
#pragma once

#include "database/data_participant.hpp"
#include "database/postgres/connection.hpp"
#include "postgres/kinds.hpp"
#include "postgres_sql/calls.hpp"

#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/event_store.hpp>
#include <stela/framework/transaction_outcome.hpp>
#include <stela/framework/uuid.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace stela::postgres {

/// The results of stela.append_group.
struct GroupAnswer {
  enum Outcome : std::int64_t { appended, repeated, in_conflict, in_condition };

  bool is_stale = false;
  /// A follower sleeps, and must be woken after the commit.
  bool is_awaited = false;
  std::int64_t before = 0;
  std::int64_t after = 0;
  /// One element for each member.
  std::vector<std::int64_t> outcomes = {}, firsts = {}, lasts = {}, id_checksums = {},
                            conflicts = {}, actual = {};
  /// One element for each append.
  std::vector<std::int64_t> versions = {}, published = {};
  /// One element for each kind.
  std::vector<std::int64_t> kinds = {};
};

/// Threads: one at a time.
class Group {
 public:
  /// `data` is the participant whose rows go with the events, or null.
  Group(Timestamp now, database::DataParticipant* data) noexcept : now_{now}, data_{data} {}

  /// The request, its metadata and its stream ids must outlive the group. `outcomes` belong to the
  /// appending transaction.
  void add(const AppendRequest& request, std::string_view metadata, const OpenOutcomes& outcomes,
           UuidGenerator& ids);
  struct Call;
  /// Whether one of the lean functions can carry it out.
  bool is_plain() const noexcept;
  /// Events are sealed with keys, which `guard` checks before the append, in its transaction.
  bool has_keys() const noexcept { return has_keys_; }
  /// The result refers to the group.
  sql::guard_keys guard(std::int64_t order_lock) noexcept {
    return {.order_lock = order_lock, .keys = keys_, .newest_key = newest_key_};
  }
  std::size_t size() const noexcept { return members_.size(); }

  /// The outcome of member `number`: throws ConcurrencyConflict, ConditionConflict, or CorruptEvent
  /// if the append id that it repeats is damaged.
  AppendResult result_of(std::size_t number, const GroupAnswer& answer) const;
  /// The member's stored events, if it appended any.
  void events_of(std::size_t number, const GroupAnswer& answer, KindTable& kinds,
                 FunctionRef<void(const StoredEvent&)> use) const;
  /// The ids of the member's events.
  std::vector<Uuid> ids_of(std::size_t number) const;

 private:
  friend struct Call;
  using KindKey = std::tuple<std::string_view, std::string_view, int, bool>;
  struct Member {
    const AppendRequest* request;
    std::string_view metadata;
    std::size_t first_append;
    /// The state that its condition was read from is committed, or part of this transaction.
    bool has_read_position;

    /// The position after which its condition looks for events. A lost position is reported only
    /// after the append id has been looked up.
    std::int64_t required_position() const noexcept {
      const GlobalSequence after = request->condition->after.value_or(GlobalSequence{0});
      return (has_read_position ? after : GlobalSequence::max()).value();
    }
  };
  struct Append {
    const StreamAppend* request;
    std::size_t member;
    std::size_t stream;
    std::size_t first_event;
    std::int64_t last_published;

    /// -1 for any.
    std::int64_t expected() const noexcept {
      const auto version = request->expected.version();
      return version ? version->value() : -1;
    }
  };
  struct Event {
    const NewEvent* request;
    std::size_t append;
    std::size_t kind;
    Uuid id;
    std::string_view correlation;
    std::string_view metadata;
    /// The version of the stream's previous published event within the append; otherwise 0.
    std::int64_t previous;
    std::int64_t checksum;
    std::optional<std::uint32_t> key;
    /// The tags in stored form.
    std::string tags;

    bool has_own_context() const noexcept { return request->context != nullptr; }
  };

  void add_append(const StreamAppend& append, std::string_view& correlation, UuidGenerator& ids);
  void add_event(const NewEvent& event, std::string_view correlation, const Uuid& id);
  std::size_t end_of_appends(std::size_t member) const noexcept;
  std::size_t end_of_events(std::size_t append) const noexcept;
  /// True for one event without a member that only checks its condition.
  bool is_one_event() const noexcept {
    return members_.size() == 1 && appends_.size() == 1 && events_.size() == 1;
  }

  void add_names(Array& streams, sql::kind_rows& kinds) const;
  /// Adds the key from the data participant for each event, if there is such a participant.
  void add_events(sql::group_event_rows& events, Array& keys) const;
  void add_members(sql::member_rows& members) const;
  void add_appends(sql::stream_append_rows& appends) const;
  void add_appends(sql::plain_append_rows& appends) const;
  void add_contexts(sql::own_context_rows& contexts) const;
  void add_tags(sql::event_tags_rows& tags, sql::tag_hash_rows& hashes) const;
  void add_conditions(sql::condition_rows& conditions, sql::item_rows& items) const;

  GroupAnswer answer_of(const sql::append_group::Row& row) const;
  GroupAnswer answer_of(const sql::append_group_plain::Row& row) const;
  GroupAnswer answer_of(const sql::append_one::Row& row) const;
  template <class Row>
  GroupAnswer plain_answer_of(const Row& row) const;

  const Timestamp now_;
  database::DataParticipant* const data_;
  std::vector<Member> members_;
  std::vector<Append> appends_;
  std::vector<Event> events_;
  std::map<std::string_view, std::size_t> streams_;
  std::map<KindKey, std::size_t> kinds_;
  std::vector<std::string_view> stream_names_;
  std::vector<KindKey> kind_keys_;
  /// Correlations that start with one of the group's events.
  std::deque<std::string> correlations_;
  /// The metadata of events with a context of their own.
  std::deque<std::string> own_metadata_;
  /// The keys of personal fields.
  Array keys_ = Array::of_bytes();
  std::int64_t newest_key_ = 0;
  bool has_keys_ = false;
};

/// A call of one of the functions, and the rows that its parameters refer to.
struct Group::Call {
  /// For a call in a transaction of its own, which must not be flushed, with the participants of
  /// `epoch` and the connection's run.
  struct Own {
    std::int64_t order_lock;
    std::int64_t bell;
    Uuid id;
  };
  /// Calls stela.append_group. Without `own`, it is inside a user's transaction, which has the lock
  /// and an id.
  static Call of_group(const Group& group, const std::optional<Own>& own, const Uuid& epoch,
                       const Uuid& run);
  /// A call on a lane: stela.append_one for one event, otherwise stela.append_group_plain.
  static Call of_plain(const Group& group, const Own& own, const Uuid& epoch, const Uuid& run);

  GroupAnswer answer(Result result) const { return read_(group_, std::move(result)); }

  std::string_view sql;
  Parameters parameters;

 private:
  template <class Named>
  Call(const Group& group, const Named& call, std::shared_ptr<const void> rows)
      : sql{Named::sql},
        parameters{call.parameters()},
        group_{group},
        rows_{std::move(rows)},
        read_{[](const Group& of, Result result) {
          typename Named::Row row{std::move(result)};
          row.step();
          return of.answer_of(row);
        }} {}
  static Call of_one(const Group& group, const Own& own, const Uuid& epoch, const Uuid& run);

  const Group& group_;
  std::shared_ptr<const void> rows_;
  GroupAnswer (*read_)(const Group&, Result);
};

}  // namespace stela::postgres
