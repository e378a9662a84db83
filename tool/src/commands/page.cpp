#include "commands/page.hpp"

#include "cli/text.hpp"
#include "event_text.hpp"

#include <utility>

namespace stela::tool {

TimeRange::TimeRange(const Arguments& arguments) {
  if (const auto text = arguments.text("--since")) since = to_time(*text, "--since");
  if (const auto text = arguments.text("--until")) until = to_time(*text, "--until");
}

Page::Page(const Arguments& arguments, std::int64_t default_limit)
    : Page{arguments.integer("--limit", {1, no_limit}).value_or(default_limit),
           arguments.has("--newest-first") ? Direction::backward : Direction::forward,
           arguments.has("--look-further")} {
  is_continued_ = arguments.has("--after");
}

Page::Page(const Arguments& arguments, Direction direction)
    : Page{arguments.integer("--limit", {1, no_limit}).value_or(100), direction,
           arguments.has("--look-further")} {
  is_continued_ = arguments.has("--after");
}

bool Page::take(std::string place) {
  if (shown_ == limit_) {
    end_ = End::of_page;
    return false;
  }
  ++shown_;
  last_ = std::move(place);
  return true;
}

bool Page::look(std::string place) {
  if (is_bounded() && looked_ - shown_ >= most_looked) {
    end_ = End::of_work;
    return false;
  }
  ++looked_;
  if (shown_ < limit_) last_ = std::move(place);
  return true;
}

void Page::stop(std::string place, std::int64_t looked) {
  if (end_ == End::of_page) return;
  end_ = End::of_work;
  last_ = std::move(place);
  looked_ = looked;
}

void Page::tell(Output& out, std::string_view noun, std::int64_t total) const {
  if (end_ == End::of_all) return;
  if (end_ == End::of_page) return out.more({"--after", last_});
  std::string found = shown_ == 0 ? "none" : in_digits(shown_);
  found += is_continued_   ? " among the next "
           : is_backward() ? " among the newest "
                           : " among the first ";
  found += in_digits(looked_);
  if (total > 0) found.append(" of ").append(in_digits(total));
  out.more({"--after", last_, found.append(" ").append(noun)});
}

}  // namespace stela::tool
