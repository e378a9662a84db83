#include "care/laws.hpp"

#include "care/sentence.hpp"
#include "operations_sql/care.hpp"

#include <string>
#include <utility>

namespace stela::care {
namespace {

namespace sql = operations::sql;

template <class Statement>
void rows_of(database::Connection& connection, Law::Tell tell) {
  auto rows = connection.rows(Statement{});
  while (rows.step()) tell(rows.subject(), rows.detail());
}

}  // namespace

void hold(Inspection& inspection, const Law& law) {
  inspection.read([&](database::Connection& connection) {
    law.broken(connection, [&](std::string_view subject, std::string_view detail) {
      std::string where = sentence(law.where, {subject});
      std::string what = sentence(law.what, {detail});
      if (law.advice.empty()) return inspection.report(std::move(where), std::move(what));
      inspection.report(std::move(where), std::move(what), std::string{law.advice});
    });
  });
}

namespace laws {

constexpr Law kinds_are_numbered{.broken = rows_of<sql::inspect_kind_numbers>,
                                 .where = "event kind {}",
                                 .what = "event kind {} is missing before it",
                                 .advice = {}};
constexpr Law groups_have_events{.broken = rows_of<sql::inspect_append_groups>,
                                 .where = "append group {}",
                                 .what = "it refers to missing events",
                                 .advice = {}};
constexpr Law tag_epoch_is_there{.broken = rows_of<sql::inspect_tag_epoch>,
                                 .where = "table tag_epoch",
                                 .what = "its row is missing",
                                 .advice = {}};

}  // namespace laws
}  // namespace stela::care
