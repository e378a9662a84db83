"""Draws what a terminal shows: text with its escape sequences from stdin, as SVG to stdout."""
import re
import sys
from xml.sax.saxutils import escape

COLUMNS, LINES = int(sys.argv[1]), int(sys.argv[2])
WIDTH, HEIGHT, MARGIN = 7.8, 17, 12
COLORS = {30: "#4b5263", 31: "#e06c75", 32: "#98c379", 33: "#e5c07b", 34: "#61afef", 35: "#c678dd",
          36: "#56b6c2", 37: "#dcdfe4", 90: "#7f848e", 91: "#e06c75", 92: "#98c379", 93: "#e5c07b",
          94: "#61afef", 95: "#c678dd", 96: "#56b6c2", 97: "#ffffff"}
FOREGROUND, BACKGROUND = "#dcdfe4", "#21252b"


class Style:
    def __init__(self):
        self.color, self.bold, self.dim, self.reverse = FOREGROUND, False, False, False

    def apply(self, code):
        if code == 0:
            self.__init__()
        elif code in (1, 2, 7):
            setattr(self, {1: "bold", 2: "dim", 7: "reverse"}[code], True)
        elif code == 22:
            self.bold = self.dim = False
        elif code == 27:
            self.reverse = False
        elif code in COLORS or code == 39:
            self.color = COLORS.get(code, FOREGROUND)
        elif code not in (40, 49):
            sys.exit(f"a style that isn't drawn: {code}")


print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{COLUMNS * WIDTH + 2 * MARGIN:.0f}" '
      f'height="{LINES * HEIGHT + 2 * MARGIN}" font-family="ui-monospace, Menlo, Consolas, '
      '\'DejaVu Sans Mono\', monospace" font-size="13">')
print(f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>')
style = Style()
for number, line in enumerate(sys.stdin.read().split("\n")[:LINES]):
    column, y = 0, MARGIN + number * HEIGHT
    for part in re.split(r"(\x1b\[[0-9;]*m|\x0e|\x0f)", line):
        sequence = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if sequence:
            for code in sequence[1].split(";"):
                style.apply(int(code or 0))
        elif part and part not in "\x0e\x0f":
            x = MARGIN + column * WIDTH
            color = BACKGROUND if style.reverse else style.color
            if style.reverse:
                print(f'<rect x="{x:.1f}" y="{y}" width="{len(part) * WIDTH:.1f}" height="{HEIGHT}" '
                      f'fill="{style.color}"/>')
            if part.strip():
                print(f'<text x="{x:.1f}" y="{y + 13}" xml:space="preserve" fill="{color}" '
                      f'textLength="{len(part) * WIDTH:.1f}"{" font-weight=" + chr(34) + "bold" + chr(34) if style.bold else ""}'
                      f'{" opacity=" + chr(34) + "0.6" + chr(34) if style.dim else ""}>{escape(part)}</text>')
            column += len(part)
print("</svg>")
