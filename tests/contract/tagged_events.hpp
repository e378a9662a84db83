// What the contract of queries, conditions and declared tags is asked of.
#pragma once

#include "contract/event_store.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::test {

inline std::vector<Tag> tags_of(const std::vector<std::string>& names) {
  std::vector<Tag> tags;
  for (const std::string& name : names) tags.push_back(Tag::parse(name));
  return tags;
}

inline QueryItem item(std::vector<std::string> types, const std::vector<std::string>& tags) {
  return {std::move(types), tags_of(tags)};
}

/// Queries by tag.
class QueryContract : public EventStoreContract {
 protected:
  AppendResult append_tagged(std::string_view stream, std::string_view type,
                             const std::vector<std::string>& tags) {
    const std::vector<Tag> all = tags_of(tags);
    return append(stream, ExpectedVersion::any(),
                  {NewEvent{.type = type, .payload = "{}", .tags = all}});
  }
  static AppendResult append_tagged(EventLog& log, std::string_view stream, std::string_view type,
                                    const std::vector<std::string>& tags) {
    const StreamId id = StreamId::parse(stream);
    const std::vector<Tag> all = tags_of(tags);
    const NewEvent event{.type = type, .payload = "{}", .tags = all};
    const StreamAppend one{id, ExpectedVersion::any(), {&event, 1}};
    return log.append({.streams = {&one, 1}});
  }
  std::vector<std::string> read(Query query, const QueryRange& range = {}) {
    return lines(store->read(query, range));
  }
  /// Runs `work` in a transaction, or a savepoint of one, that is rolled back.
  static void roll_back(EventLog& log, FunctionRef<void(Transaction&)> work) {
    struct RollBack {};
    try {
      log.transact([&](Transaction& transaction) {
        work(transaction);
        throw RollBack{};
      });
    } catch (const RollBack&) {
    }
  }
  /// Two courses and two students.
  void enrol() {
    append_tagged("course-c1", "defined", {});
    append_tagged("course-c2", "defined", {});
    append_tagged("course-c1", "subscribed", {"student-s1"});
    append_tagged("course-c2", "subscribed", {"student-s1", "term-7"});
    append_tagged("course-c1", "subscribed", {"student-s2"});
    append_tagged("student-s1", "renamed", {});
  }
};

class ConditionContract : public QueryContract {
 protected:
  AppendResult append_if(const AppendCondition& condition, std::string_view stream,
                         const std::vector<std::string>& tags, std::string_view append_id = {}) {
    const StreamId id = StreamId::parse(stream);
    const std::vector<Tag> all = tags_of(tags);
    const NewEvent event{.type = "subscribed", .payload = "{}", .tags = all};
    const StreamAppend one{id, ExpectedVersion::any(), {&event, 1}};
    return store->append({.streams = {&one, 1}, .append_id = append_id, .condition = &condition});
  }
  /// "5 matches 0", or what came of it instead.
  std::string outcome(const AppendCondition& condition) {
    try {
      return "appended " + std::to_string(append_if(condition, "other-1", {}).first.value());
    } catch (const ConditionConflict& e) {
      EXPECT_TRUE(e.is_retryable());
      const std::string position = std::to_string(e.position().value());
      switch (e.cause()) {
        case ConditionConflict::Cause::event:
          return position + " matches " + std::to_string(e.item());
        case ConditionConflict::Cause::missing_position:
          return "after " + std::to_string(condition.after->value()) + ", head " + position;
        case ConditionConflict::Cause::rolled_back:
          return "rolled back, head " + position;
        case ConditionConflict::Cause::tags:
          return "other tags, head " + position;
      }
    }
    return {};
  }
  /// That no event has the tag which wasn't read at the standpoint.
  static AppendCondition at(const Standpoint& standpoint, const std::string& tag) {
    return {{{item({}, {tag})}}, standpoint.head, standpoint.tag_epoch, standpoint.outcome};
  }
};

/// What types declare.
class DeclaredTagsContract : public QueryContract {
 protected:
  static constexpr std::array<TagDeclaration, 1> student{{{"student", true}}};
  static constexpr std::span<const TagDeclaration> none{};
  static constexpr std::array<TagDeclaration, 1> account{{{"account", true}}};
  static constexpr std::array<TagDeclaration, 1> accounts{{{"account", true, true}}};
  static constexpr std::array<TagDeclaration, 2> both{{{"student", true}, {"term", false}}};

  static void append_declared(EventLog& log, std::string_view type,
                              std::optional<std::span<const TagDeclaration>> declared,
                              const std::vector<std::string>& tags,
                              std::string_view in = "course-c1",
                              const AppendCondition* condition = nullptr) {
    const StreamId stream = StreamId::parse(in);
    const std::vector<Tag> all = tags_of(tags);
    const NewEvent event{.type = type, .payload = "{}", .tags = all, .declared = declared};
    const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
    log.append({.streams = {&one, 1}, .condition = condition});
  }
  /// What was said against it; empty if it was appended.
  std::string try_append(std::optional<std::span<const TagDeclaration>> declared,
                         const std::vector<std::string>& tags,
                         std::string_view stream = "course-c1") {
    const std::vector<Tag> all = tags_of(tags);
    try {
      append(stream, ExpectedVersion::any(),
             {NewEvent{.type = "subscribed", .payload = "{}", .tags = all, .declared = declared}});
      return {};
    } catch (const UsageError& e) {
      return e.what();
    }
  }
  std::string try_stand(std::string_view category, std::span<const TagDeclaration> declared,
                        std::string_view type = "subscribed") {
    const TagNeed need{type, category, declared};
    try {
      (void)store->standpoint({&need, 1});
      return {};
    } catch (const TagsMissing& e) {
      return e.what();
    }
  }
};

}  // namespace stela::test
