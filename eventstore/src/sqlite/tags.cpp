// Queries of a store on SQLite by tags, and the questions of decisions.
#include "sqlite_sql/tags.hpp"
#include "ledger/cursor.hpp"
#include "sqlite/append_id.hpp"
#include "sqlite/core.hpp"
#include "sqlite/pages.hpp"
#include "sqlite/tag_guard.hpp"
#include "sqlite/tag_rows.hpp"
#include "sqlite/transaction.hpp"

#include <limits>

namespace stela::sqlite {
namespace {

Standpoint read_standpoint(Connection& connection) {
  auto row = connection.rows(sql::standpoint{});
  row.step();
  return {GlobalSequence{row.head()}, row.epoch()};
}

/// Records these types' declarations; TagsMissing if their events lack needed tags.
void require(Core& core, std::span<const TagNeed> needs) {
  if (core.options().read_only) {
    return core.reading().read([&](Connection& connection) {
      const TagFacts facts = read_tag_facts(connection);
      for (const TagNeed& need : needs) {
        if (lacks_tags(connection, facts, need)) throw_tags_missing(need);
      }
    });
  }
  Writer& writer = core.writer();
  writer.run_statements([&](Connection& connection) {
    for (const TagNeed& need : needs) {
      writer.tags().require(connection, need, writer.next_sequence());
    }
  });
}

}  // namespace

EventRange Core::read(const stela::Query& query, const QueryRange& range) {
  check_query(query);
  return ledger::read_query(make_pages(reading(), kinds_), query, range);
}

Standpoint Core::standpoint(std::span<const TagNeed> needs) {
  // Once the needs are known to be met in this epoch, no further query is needed.
  for (;;) {
    Standpoint now;
    reading().read([&](Connection& connection) { now = read_standpoint(connection); });
    if (needs.empty() || coverage_.has(needs, now.tag_epoch)) {
      // A store in memory has one connection, and shows this thread's own uncommitted writes.
      now.outcome = outcome_of(now.head);
      now.store = conventions_.store;
      return now;
    }
    require(*this, needs);
    coverage_.add(needs, now.tag_epoch);
  }
}

TagCatalogue Core::tag_catalogue() {
  TagCatalogue catalogue;
  reading().read([&](Connection& connection) {
    catalogue.types = read_tag_facts(connection).list();
    catalogue.has_tags = connection.rows(sql::has_tags{}).step();
  });
  return catalogue;
}

std::optional<AppendResult> Core::find_append(std::string_view append_id) {
  std::optional<AppendResult> found;
  reading().read([&](Connection& connection) { found = find_append_id(connection, append_id); });
  return found;
}

void Core::for_each_tag(std::string_view after,
                        FunctionRef<bool(std::string_view, GlobalSequence)> f) {
  reading().read([&](Connection& connection) {
    constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
    std::int64_t hash =
        after.empty() ? std::numeric_limits<std::int64_t>::min() : hash_of_tag(after);
    bool goes_on = after.empty() || hash++ != last;
    std::string tags;
    while (goes_on) {
      GlobalSequence first;
      {
        auto row = connection.rows(sql::next_tag{.from = hash});
        if (!row.step()) return;
        hash = row.tag();
        first = GlobalSequence{row.sequence()};
      }
      read_tags(connection, first.value(), tags);
      split_tags(tags, [&](std::string_view tag) {
        if (hash_of_tag(tag) == hash) goes_on = goes_on && f(tag, first);
      });
      goes_on = goes_on && hash++ != last;
    }
  });
}

void Core::declare_tags(std::span<const TagNeed> needs) {
  writer_->run_statements([&](Connection& connection) {
    for (const TagNeed& need : needs) {
      writer_->tags().settle(connection, need.type, need.declared, writer_->next_sequence());
    }
  });
}

std::int64_t Core::write_tags(std::span<const TagsOfEvent> events) {
  std::int64_t tagged = 0;
  writer_->run_statements([&](Connection& connection) {
    tagged = 0;
    std::string present;
    for (const TagsOfEvent& event : events) {
      read_tags(connection, event.sequence.value(), present);
      std::vector<Tag> missing;
      for (const Tag& tag : event.tags) {
        bool has = false;
        split_tags(present, [&](std::string_view one) { has = has || one == tag.name(); });
        if (!has) missing.push_back(tag);
      }
      const std::string text = join_tags(missing, event.stream);
      if (text.empty()) continue;
      add_tags(connection, {event.sequence.value(), event.kind}, text);
      ++tagged;
    }
  });
  return tagged;
}

void Core::complete_tags(std::span<const TagNeed> needs) {
  writer_->run_statements([&](Connection& connection) {
    for (const TagNeed& need : needs) {
      const TagFact* const fact = writer_->tags().facts(connection).find(need.type, need.category);
      if (fact == nullptr) continue;
      TagFact complete = *fact;
      complete.since = 0;
      connection.run(sql::complete_tag_type{
          .type = need.type, .category = need.category, .checksum = checksum_of_fact(complete)});
    }
    connection.run(sql::raise_tag_epoch{});
    writer_->tags().forget();
  });
}

bool Core::forget_tags(std::string_view type, std::string_view category) {
  bool was_known = false;
  writer_->run_statements([&](Connection& connection) {
    was_known = connection.run(sql::delete_tag_type{.type = type, .category = category}) > 0;
    if (was_known) connection.run(sql::raise_tag_epoch{});
    writer_->tags().forget();
  });
  return was_known;
}

EventRange OpenTransaction::read(const stela::Query& query, const QueryRange& range) {
  check_query(query);
  return ledger::read_query(make_pages(*this, writer_.kinds()), query, range);
}

Standpoint OpenTransaction::standpoint(std::span<const TagNeed> needs) {
  Standpoint now;
  writer_.run_inside(work_, [&] {
    for (const TagNeed& need : needs) {
      if (writer_.tags().require(connection(), need, writer_.next_sequence())) {
        work_.outcomes.note_tags();
      }
    }
    now = read_standpoint(connection());
  });
  now.outcome = work_.outcomes.of_position(now.head);
  now.store = conventions().store;
  return now;
}

std::optional<AppendResult> OpenTransaction::find_append(std::string_view append_id) {
  return find_append_id(connection(), append_id);
}

}  // namespace stela::sqlite
