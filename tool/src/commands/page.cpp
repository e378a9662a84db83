#include "commands/page.hpp"

#include "cli/text.hpp"

#include <utility>

namespace stela::tool {

void tell_next(Output& out, std::string_view after) {
  out.note("more: --after " + in_shell(in_one_line(after)));
}

Page::Page(const Arguments& arguments, std::int64_t default_limit)
    : options_{.limit = arguments.integer("--limit", {1, no_limit}).value_or(default_limit),
               .direction =
                   arguments.has("--newest-first") ? Direction::backward : Direction::forward,
               .looks_further = arguments.has("--look-further")},
      is_continued_{arguments.has("--after")} {}

std::int64_t Page::rows_read() const noexcept {
  return options_.limit == no_limit ? no_limit : options_.limit + 1;
}

bool Page::take(std::string place) {
  if (shown_ == options_.limit) {
    end();
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
  if (shown_ < options_.limit) last_ = std::move(place);
  return true;
}

void Page::stop(std::int64_t place, std::int64_t looked) {
  if (end_ == End::of_page) return;
  end_ = End::of_work;
  last_ = std::to_string(place);
  looked_ = looked;
}

void Page::tell(Output& out, std::string_view noun, std::int64_t total) const {
  if (end_ == End::of_all) return;
  if (end_ == End::of_page) return tell_next(out, last_);
  std::string text = shown_ == 0 ? "none" : in_digits(shown_);
  text.append(" among the ");
  text.append(is_continued_ ? "next " : is_backward() ? "newest " : "first ");
  text += in_digits(looked_);
  if (total > 0) text.append(" of ").append(in_digits(total));
  text.append(" ").append(noun);
  out.note(text + "; more: --after " + in_shell(in_one_line(last_)) + ", or --look-further");
}

}  // namespace stela::tool
