#include "scan.hpp"

#include "database/database.hpp"
#include "projections_sql/events.hpp"

#include <algorithm>

namespace stela::projections {

std::int64_t last_sequence(Store& store) {
  return store.last_sequence().value();
}

std::vector<std::string> types_to_read(Store& store, std::vector<std::string> wanted) {
  std::sort(wanted.begin(), wanted.end());
  bool all = true;
  store.database().read([&](database::Connection& connection) {
    auto known = connection.rows(sql::event_kind_types{});
    while (all && known.step()) {
      all = std::binary_search(wanted.begin(), wanted.end(), known.type());
    }
  });
  return all ? std::vector<std::string>{} : wanted;
}

}  // namespace stela::projections
