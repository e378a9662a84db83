// stela: a view names the events that it needs: `using Events = stela::EventSet<…>;`
#include "../domain.hpp"

struct Nothing {
  stela::Id<Room> room;
  static constexpr auto tags = stela::tags(&Nothing::room);
};
static_assert(stela::detail::check_view<Nothing>());
