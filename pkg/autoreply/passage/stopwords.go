package passage

import "strings"

// englishStopWords stand in questions about anything. Each has a space on either
// side.
const englishStopWords = " a about above after again all also am an and any are aren as at be because been before being below" +
	" between both but by can cannot could couldn did didn do does doesn doing don done down each else few for from further get" +
	" gets getting give go goes going got had has hasn have haven having he hello help her here hers hey hi him his how i if in" +
	" into is isn it its itself just know let like ll looking make makes many may me might more most much must my need no nor not" +
	" now of off on once one only or other our out over own please question re s same say see she should shouldn since so some" +
	" something still such t tell than thank thanks that the their them then there these they thing things this those though to today" +
	" too try trying under until up us use used uses using ve very via want wants was wasn we well were what when where whether" +
	" which while who whom whose why will with won work works would wouldn yes yet you your yours "

func isEnglishStopWord(word string) bool { return strings.Contains(englishStopWords, " "+word+" ") }

// withoutChineseStopWords cuts Chinese text where a word stands that a question
// about anything may have. Single characters that also are part of other words,
// such as 会, 在 or 请, are not among them.
func withoutChineseStopWords(text string) string {
	// Of two that begin alike the longer one comes first, and is taken.
	stops := strings.Fields("请告诉 告诉 可不可以 可以 是不是 是什么 是否 能不能 能否 有没有 为什么 什么 为何 怎么样 怎么 怎样 如何" +
		" 哪里 哪些 哪个 哪儿 多少 请问 谢谢 你好 您好 一下 一个 这个 那个 这里 那里 我们 我 你们 你 您 它们 它 的 了 吗 呢 吧 啊 呀 嘛")
	pairs := make([]string, 0, 2*len(stops))
	for _, stop := range stops {
		pairs = append(pairs, stop, " ")
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
