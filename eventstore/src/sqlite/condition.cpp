#include "sqlite/condition.hpp"

#include "sqlite/event_rows.hpp"
#include "sqlite/tag_places.hpp"
#include "sqlite_sql/tags.hpp"

#include <stela/framework/error.hpp>

#include <optional>
#include <string>

namespace stela::sqlite {
namespace {

/// Finds the first matching event, up to one that was found already.
class Search {
 public:
  Search(Connection& connection, KindTable& kinds) noexcept
      : connection_{connection}, kinds_{kinds} {}

  void look(const QueryItem& item, std::size_t number, std::int64_t from) {
    const auto places = places_of(item, kinds_, Direction::forward);
    auto place = places->next(connection_, from);
    while (place && (!first_ || *place < *first_)) {
      if (is_match(item, *place)) {
        first_ = *place;
        item_ = number;
        return;
      }
      place = places->next(connection_, *place + 1);
    }
  }

  void report() const {
    if (first_) throw ConditionConflict{GlobalSequence{*first_}, item_};
  }

 private:
  bool is_match(const QueryItem& item, std::int64_t sequence) {
    auto row = connection_.rows(sql::tagged_event{.sequence = sequence});
    if (!row.step()) {
      throw CorruptEvent{"event " + std::to_string(sequence) +
                         " has tags, but is missing; restore it from a backup"};
    }
    EventRows rows{connection_, kinds_, names_};
    rows.tags = &tags_;
    return matches(item, rows.read(row));
  }

  Connection& connection_;
  KindTable& kinds_;
  StreamNames names_;
  std::string tags_;
  std::optional<std::int64_t> first_;
  std::size_t item_ = 0;
};

}  // namespace

void check_holds(const AppendCondition& condition, Connection& connection, KindTable& kinds) {
  const std::int64_t from = condition.after.value_or(GlobalSequence{0}).value() + 1;
  Search search{connection, kinds};
  std::size_t number = 0;
  for (const QueryItem& item : condition.query.items) search.look(item, number++, from);
  search.report();
}

}  // namespace stela::sqlite
